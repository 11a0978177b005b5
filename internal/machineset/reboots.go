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

// withReboots is the state with what changes in the configuration of every machine that will be given another one, and
// what it has to reboot for. What a machine runs is what state stands for, and what the last refresh saw to differ from
// that; the run itself asks the machine.
func (r PriorState) withReboots(p, prior Set, before renderedOnce, files Rendered) (PriorState, finding.List) {
	changed := r.reconfigured(files)
	if len(changed) == 0 {
		return r, nil
	}

	old, ok := before()
	if !ok {
		return r, nil // the run finds out
	}

	var out finding.List

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
			out.Append(finding.UnableAt(p.machinePath(name), "compare", "configurations",
				finding.Report{Cause: []string{name + ": " + err.Error()}}))

			continue
		}

		state := r.Machines[name]

		// A run has left it with another configuration than state stands for: for a lock, or until its next boot.
		switch {
		case state.StagedDigest != "":
			fields = append(fields, "what waits for its next boot")
		case p.Machines[name].Locked && len(changes)+len(fields) == 0:
			fields = []string{"what it was kept from"}
		}

		state.RebootFor = fields
		r.Machines[name], r.changes[name] = state, changes
	}

	return r, append(out, p.refuseVolumes(prior, stuck)...)
}

// talosAtChange is the Talos that a machine runs when it is given another configuration: that of the configuration
// comes after an upgrade and before a downgrade (cluster, changeOf).
func (p Set) talosAtChange(name string, state step.MachineState) string {
	now, running := machineconfig.ReadTalosVersion(state.TalosVersion)

	then, err := machineconfig.ParseTalosVersion(p.Machines[name].Group.TalosVersion)
	if err != nil || running && then.LT(now.Version) {
		return state.TalosVersion
	}

	return then.String()
}

// reconfigured lists the machines that run another configuration than is wanted.
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

// comparison lists what changes from one configuration to another, and the fields that take a reboot for it. drift is
// where the machine differs from the first one: those places change too, unless the second configuration has changed
// there as well and may be what the machine has.
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
