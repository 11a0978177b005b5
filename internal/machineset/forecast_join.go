package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// A machine that joins keeps its identity in the plan: its address, its hardware, its installer. That also holds when
// it was wiped, when a killed run left an incomplete record, and when other hardware takes its name.

// exchanged reports whether a machine is other hardware than the one that had its name.
func (r PriorState) exchanged(name string) bool { return r.recordOf(name) != name }

// ofJoins are the fields that only the apply knows for any machine that joins.
var ofJoins = []step.Field{
	step.FieldStage, step.FieldReady, step.FieldNodeName, step.FieldKubernetesVersion, step.FieldDrift,
}

// join marks as unknown what only the apply learns about a machine that joins. known is what was recorded under its
// name, and node the node name in its configuration.
func (f *MachineForecast) join(p Set, m Machine, known step.MachineState, node string, other bool) {
	f.Open = append(f.Open, ofJoins...)

	if known.NodeName != "" && known.NodeName == node {
		f.Texts[step.FieldNodeName] = node // a deleted node returns under its name
	}

	on := p.Platform()

	if known.TalosVersion != machineconfig.CanonicalVersion(m.Group.TalosVersion) {
		f.Open = append(f.Open, step.FieldTalosVersion)
	}

	if known.UUID == "" || on.Identified || other {
		f.Open = append(f.Open, step.FieldUUID)
	}

	if on.Moves {
		f.Open = append(f.Open, step.FieldAddress)
	}
}
