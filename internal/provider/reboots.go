package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// refuseReboots compares the configuration that state stands for with the new one:
// Talos applies some changes only with a reboot, which this version does not do.
func refuseReboots(p, prior pool, steps []cluster.Step, files rendered) diag.Diagnostics {
	changed := reconfigured(steps)
	if len(changed) == 0 || prior.unknown || prior.sealed {
		return nil
	}

	old, diags := prior.renderForPlan()
	if diags.HasError() {
		// The state was made by a build that allowed more. Talos itself refuses a
		// change that needs a reboot, before it changes anything.
		return nil
	}

	var out diag.Diagnostics

	for _, name := range changed {
		if _, existed := old.configs[name]; !existed {
			continue
		}

		reboot, fields, err := machineconfig.NeedsReboot(old.configs[name], files.configs[name])

		switch {
		case err != nil:
			out.Append(unableAt(p.machinePath(name), "compare", "configurations", report{Cause: []string{name + ": " + err.Error()}}))
		case reboot:
			out.Append(refused(p.machinePath(name), "Unsupported change of configuration",
				fmt.Sprintf("the new configuration of %s differs in %s, which Talos applies only with a reboot", name, describe(fields)),
				notYet+"reboot machines",
				"Undo the change, or make it with `talosctl apply-config` first and here afterwards"))
		}
	}

	return out
}

// reconfigured lists the machines that run and would be given another configuration.
func reconfigured(steps []cluster.Step) []string {
	var names []string

	for _, s := range steps {
		if apply, ok := s.(cluster.ApplyConfig); ok && apply.Access == cluster.Member {
			names = append(names, apply.Machine)
		}
	}

	return names
}
