package machineset

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// withReboots is the state with the configuration changes of every machine that gets another configuration, and the
// ones that need a reboot. The running configuration is that of state, with the drift of the last refresh; the run
// itself asks the machine.
func (r PriorState) withReboots(p, prior Set, before renderedOnce, files Rendered) (PriorState, finding.List) {
	changed := r.reconfigured(files)
	if len(changed) == 0 {
		return r, nil
	}

	old, ok := before()
	if !ok {
		return r, nil // the run decides it
	}

	var failed finding.Alike[string]

	stuck := stuckVolumes{}
	r.Machines, r.changes = maps.Clone(r.Machines), map[string][]machineconfig.Change{}

	for _, name := range changed {
		had, existed := old.Configs[cmp.Or(r.Renamed[name], name)]
		if !existed {
			continue
		}

		drift := r.Seen[name].Drift.Places()

		changes, fields, err := comparison(had, files.Configs[name], drift, p.talosAtChange(name, r.Machines[name]))
		if err == nil {
			err = stuck.add(name, had, files.Configs[name], changes)
		}

		if err != nil {
			failed.Add(err.Error(), name)

			continue
		}

		if p.Platform().Container {
			fields = machineconfig.InContainers(fields)
		}

		state := r.Machines[name]

		// A run left it with another configuration than that of state: because of a lock, or until its next boot.
		switch {
		case state.StagedDigest != "":
			fields = append(fields, "what waits for its next boot")
		case p.Machines[name].Locked && len(changes)+len(fields) == 0:
			fields = []string{"what it was kept from"}
		}

		state.RebootFor = fields
		r.Machines[name], r.changes[name] = state, changes
	}

	var out finding.List
	for problem, names := range failed.All() {
		out.Append(comparisonFailed.At(p.placeOf(names...), finding.Args{"machines": names, "problem": problem}))
	}

	return r, append(out, p.refuseVolumes(prior, stuck)...)
}

// talosAtChange is the Talos version of a machine when it gets another configuration, which comes after an upgrade
// and before a downgrade (cluster, changeOf).
func (p Set) talosAtChange(name string, state step.MachineState) string {
	now, running := machineconfig.ReadTalosVersion(state.TalosVersion)

	then, err := machineconfig.ParseTalosVersion(p.Machines[name].Group.TalosVersion)
	if err != nil || running && then.LT(now.Version) {
		return state.TalosVersion
	}

	return then.String()
}

// reconfigured lists the machines that run another configuration than the wanted one.
func (r PriorState) reconfigured(files Rendered) []string {
	var names []string

	for _, name := range slices.Sorted(maps.Keys(files.Machines)) {
		has, gets := r.Machines[name].ConfigDigest, files.Machines[name].ConfigDigest
		if r.Machines[name].Access == step.Member && has != "" && has != gets {
			names = append(names, name)
		}
	}

	return names
}

// comparison lists the changes between two configurations, and the fields that need a reboot. drift is where the
// machine differs from the first one. Those places change too, unless the second configuration also changed there and
// may be what the machine has.
func comparison(
	before, after []byte, drift []fieldpath.Place, talos string,
) ([]machineconfig.Change, []string, error) {
	changes, err := machineconfig.Diff(before, after)
	if err != nil {
		return nil, nil, err
	}

	_, fields, err := machineconfig.NeedsReboot(before, after, talos)
	if errors.Is(err, machineconfig.ErrUnknownForm) {
		return changes, nil, nil // the run asks Talos
	}

	if err != nil {
		return changes, fields, err
	}

	drift = slices.DeleteFunc(drift, func(place fieldpath.Place) bool {
		return slices.ContainsFunc(changes, func(c machineconfig.Change) bool { return c.Place.Equal(place) })
	})

	for _, place := range drift {
		if field := machineconfig.RebootField(place, talos); field != "" && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}

	back, err := machineconfig.PutBack(after, drift)

	return append(changes, back...), fields, err
}

// RebootFor lists the fields in which the active configuration of a machine differs from the wanted one and for which
// it must reboot.
func RebootFor(active, wanted []byte, talos string) ([]string, error) {
	_, fields, err := machineconfig.NeedsReboot(active, wanted, talos)
	if errors.Is(err, machineconfig.ErrUnknownForm) {
		// It is then applied without a reboot. Talos refuses that if one is needed (ApplyConfiguration in mode
		// NO_REBOOT, up to Talos 1.13).
		return nil, nil
	}

	return fields, err
}
