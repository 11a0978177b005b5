package machineset

import (
	"cmp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// Field is a field of a machine that people see (observed). The rest of the record is only known after an apply.
type Field string

// The fields.
const (
	FieldAddress           Field = "address"
	FieldUUID              Field = "uuid"
	FieldStage             Field = "stage"
	FieldReady             Field = "ready"
	FieldTalosVersion      Field = "talos_version"
	FieldKubernetesVersion Field = "kubernetes_version"
	FieldNodeName          Field = "node_name"
	FieldDrift             Field = "drift"
)

// MachineForecast is what a plan says of what people will see of one machine: what it does not name stays as it is.
type MachineForecast struct {
	// Anew is true when nothing is known, because state has no record under the name.
	Anew bool
	// Joins is true when the machine becomes a working part of its cluster by this plan, be it again.
	Joins bool
	// From is the name under which state has the machine.
	From string
	// Open are the fields that the plan may change, to what only the apply finds out.
	Open []Field
	// Texts are fields whose value the plan knows.
	Texts map[Field]string
}

// forecastMachines says of every machine of a set what a plan changes in its record.
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
			out[name] = MachineForecast{Anew: true}
		}
	}

	return out
}

// recordOf is the name under which the record of a machine is now, that of other hardware which had its name included.
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
		From: cmp.Or(r.Renamed[name], name), Open: r.unsettled(name, known), Texts: map[Field]string{},
		Joins: begins || r.exchanged(name) || !wasWhole(p, known),
	}

	if at := p.Machines[name].Address; p.Host == nil && at != "" && r.Seen[r.recordOf(name)].Address != at {
		f.Texts[FieldAddress] = at
	}

	for _, step := range steps {
		f.add(step)
	}

	if f.Joins {
		f.join(p, p.Machines[name], known, files.Nodes[name], r.exchanged(name))
	}

	f.Open = slices.DeleteFunc(f.Open, func(field Field) bool { return f.Texts[field] != "" })

	return f
}

// unsettled are the fields of a machine that was not seen at rest: an apply waits for it.
func (r PriorState) unsettled(name string, known step.MachineState) []Field {
	var open []Field

	if !known.Ready {
		open = append(open, FieldReady)
	}

	if len(r.Seen[name].Drift) > 0 {
		open = append(open, FieldDrift)
	}

	if slices.ContainsFunc(r.changes[name], machineconfig.Change.Renames) {
		open = append(open, FieldNodeName)
	}

	if known.NodeName == "" {
		open = append(open, FieldNodeName, FieldKubernetesVersion)
	}

	return open
}

// add notes what a step changes.
func (f *MachineForecast) add(op step.Step) {
	switch s := op.(type) {
	case step.ApplyConfig:
		f.Joins = f.Joins || s.Access != step.Member
	case step.Upgrade:
		f.upgrade(s)
	case step.UpgradeComponent:
		f.upgradeComponent(s)
	case step.RestartKubelet, step.DeleteNode:
		f.Open = append(f.Open, FieldNodeName, FieldKubernetesVersion)
	case step.WriteMeta:
		if strings.Contains(s.Keys, metakey.Text(metakey.UUIDOverride)) {
			f.Open = append(f.Open, FieldUUID)
		}
	case step.Reset, step.ReplaceVolumes:
		f.Joins = true
	}
}

// upgradeComponent notes what the kubelet is after it: its version is that of Kubernetes on a machine.
func (f *MachineForecast) upgradeComponent(s step.UpgradeComponent) {
	if s.Component != kubenames.Kubelet {
		return
	}

	version, known := kubenames.ImageVersion(s.Image)
	if s.Awaits || !known { // a later apply may make the change
		f.Open = append(f.Open, FieldKubernetesVersion)

		return
	}

	f.Texts[FieldKubernetesVersion] = version
}

// upgrade notes what is another after an upgrade; a pod is another one.
func (f *MachineForecast) upgrade(s step.Upgrade) {
	f.Joins = f.Joins || s.Loses
	f.Texts[FieldTalosVersion] = s.To

	if s.Container {
		f.Open = append(f.Open, FieldUUID, FieldAddress)
	}
}
