package machineset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// problems finds the attributes of an error of internal/machineconfig about a machine or, without one, about the
// cluster.
func (p Set) problems(machine string, err error) error {
	return p.problemsIn(p.groupOf(machine), machine, err)
}

// problemsIn is problems, also for settings of a group.
func (p Set) problemsIn(g *Group, machine string, err error) error {
	if err == nil {
		return nil
	}

	fields := machineconfig.FieldErrors(err)
	if len(fields) == 0 {
		if machine == "" {
			return err
		}

		return fmt.Errorf("machine %s: %w", machine, err)
	}

	var problems []error
	for _, f := range fields {
		at := p.locate(f, g, machine)
		if ofProvider(f) {
			f.Fix += "; it is in `clusters` of the provider"
		}

		mistake := &finding.FieldError{At: at, Field: f}
		if !strings.HasPrefix(at.String(), p.machinePath(machine).String()) {
			mistake.Machine = machine
		}

		problems = append(problems, mistake)
	}

	return errors.Join(problems...)
}

// ofProvider reports whether a setting is in the provider configuration.
func ofProvider(field *machineconfig.FieldError) bool {
	steps := field.Steps()

	return len(steps) > 0 && steps[0] == "clusters"
}

// locate finds the attribute of a setting. machine is the machine that the setting was read for; settings of the
// cluster have none.
func (p Set) locate(field *machineconfig.FieldError, g *Group, machine string) finding.Path {
	steps := field.Steps()
	if len(steps) == 0 {
		return p.machinePath(machine)
	}

	switch steps[0] {
	case "machine":
		return p.locateMachine(steps[1:], machine)
	case "pool":
		return finding.Along(g.At, attributeSteps(steps[1:]))
	case "talos_version":
		return g.VersionAt
	case "patches":
		if p.InHandle {
			return finding.Along(finding.Root("cluster").AtName("config_patches"), steps[1:])
		}

		return finding.Along(finding.Root("cluster_config_patches"), steps[1:])
	case "talos_version_contract":
		steps[0] = "version_contract"
	}

	if p.InHandle && !ofProvider(field) {
		return finding.Along(finding.Root("cluster"), steps)
	}

	return finding.Along(finding.Path{}, steps)
}

// locateMachine finds a setting of one machine. Install settings and volumes come from its group unless the machine
// has its own.
func (p Set) locateMachine(steps []any, machine string) finding.Path {
	at := p.machinePath(machine)

	switch {
	case len(steps) == 0:
		return at
	case steps[0] == "workload_isolation", steps[0] == "image_verification",
		steps[0] == "system_volumes" && !p.Machines[machine].OwnVolumes:
		return finding.Along(p.Machines[machine].Group.At, steps)
	case !p.Platform().Listed && steps[0] == "patches":
		return finding.Along(p.Machines[machine].Group.At.AtName("replica_config_patches").AtMapKey(p.Machines[machine].Key),
			steps[1:])
	case !p.Platform().Listed:
		return at // single machines have no other settings
	case steps[0] == "patches":
		return finding.Along(at, attributeSteps(steps))
	case steps[0] == "install" && !p.Machines[machine].OwnInstall:
		return finding.Along(p.Machines[machine].Group.At, steps)
	default:
		return finding.Along(at, steps)
	}
}

// attributeSteps are the steps to a setting of a group or a machine, whose patches have another attribute name.
func attributeSteps(steps []any) []any {
	if len(steps) > 0 && steps[0] == "patches" {
		steps[0] = "config_patches"
	}

	return steps
}

func (p Set) machinePath(machine string) finding.Path {
	if p.Single {
		return finding.Path{}
	}

	on := p.Platform()
	if machine == "" {
		return finding.Root(on.list)
	}

	m := p.Machines[machine]
	at := m.Group.At.AtName(on.list)

	if on.Listed {
		at = at.AtMapKey(m.Key)
	}

	return at
}

// FindingPath is the attribute below host. For resources that join a cluster it is in the handle, which is not one of
// their attributes.
func (p Set) FindingPath(attribute string) finding.Path {
	at := finding.Root("host")
	if p.InHandle {
		at = finding.Root("cluster").AtName("host")
	}

	switch {
	case attribute == "pod_cidrs", attribute == "service_cidrs":
		return finding.Root(attribute)
	case p.InHandle && strings.HasPrefix(attribute, "pod"):
		return finding.Root("pod")
	case attribute == "":
		return at
	}

	for _, name := range strings.Split(attribute, ".") {
		at = at.AtName(name)
	}

	return at
}
