package machineset

import (
	"cmp"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// MachineForecast is what a plan reports about the attributes of one machine. What it does not name stays as it is.
type MachineForecast struct {
	step.Shown
	// NoRecord is true when everything is unknown, because state has no record under the name.
	NoRecord bool
	// From is the name of the machine in state.
	From string
}

// forecastMachines gives the changes of a plan in the record of every machine of a set.
func (r PriorState) forecastMachines(p Set, files Rendered, steps []step.Step) map[string]MachineForecast {
	out, byMachine := map[string]MachineForecast{}, map[string][]step.Step{}
	for _, step := range steps {
		byMachine[step.On()] = append(byMachine[step.On()], step)
	}

	begins := slices.ContainsFunc(steps, step.BeginsEtcd)

	for _, name := range p.Names() {
		if known, recorded := r.Machines[r.recordOf(name)]; recorded {
			out[name] = r.forecastMachine(p, name, known, files, byMachine[name], begins)
		} else {
			out[name] = MachineForecast{NoRecord: true}
		}
	}

	return out
}

// recordOf is the current name of a machine's record, including that of other hardware which had its name.
func (r PriorState) recordOf(name string) string {
	for as, of := range r.Replaced {
		if of == name {
			return as
		}
	}

	return name
}

func (r PriorState) forecastMachine(
	p Set, name string, known step.MachineState, files Rendered, steps []step.Step, begins bool,
) MachineForecast {
	f := MachineForecast{
		From: cmp.Or(r.Renamed[name], name),
		Shown: step.Shown{
			Open: r.unsettled(name, known), Texts: map[step.Field]string{},
			Joins: begins || r.exchanged(name) || !wasWhole(p, known),
		},
	}

	if at := p.Machines[name].Address; !p.Platform().Moves && at != "" && r.Seen[r.recordOf(name)].Address != at {
		f.Texts[step.FieldAddress] = at
	}

	for _, op := range steps {
		f.Add(op)
	}

	if f.Joins {
		f.join(p, p.Machines[name], known, files.Machines[name].WantedNode, r.exchanged(name))
	}

	f.Open = slices.DeleteFunc(f.Open, func(field step.Field) bool { return f.Texts[field] != "" })

	return f
}

// unsettled are the fields of a machine that was not observed at rest: an apply waits for it.
func (r PriorState) unsettled(name string, known step.MachineState) []step.Field {
	var open []step.Field

	if !known.Ready {
		open = append(open, step.FieldReady)
	}

	if len(r.Seen[name].Drift) > 0 {
		open = append(open, step.FieldDrift)
	}

	if slices.ContainsFunc(r.changes[name], machineconfig.Change.Renames) {
		open = append(open, step.FieldNodeName)
	}

	if known.NodeName == "" {
		open = append(open, step.FieldNodeName, step.FieldKubernetesVersion)
	}

	return open
}
