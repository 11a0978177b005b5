package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// A machine that joins by a plan keeps in it what tells it from others: its address, its hardware, what it is installed
// from. That is also so when it was wiped, when a run that was killed left an incomplete record of it, and when other
// hardware takes its name.

// wasWhole is whether a machine was seen to work, so that its record has all that there is to say of it: a run that was
// killed may have stored less. Boards without SMBIOS have no UUID.
func wasWhole(p Set, known step.MachineState) bool {
	return known.Access == step.Member && known.Stage == step.StageRunning && known.TalosVersion != "" &&
		(known.BootID != "" || p.Platform().Identified)
}

// exchanged is whether a machine is other hardware than the one that had its name.
func (r PriorState) exchanged(name string) bool { return r.recordOf(name) != name }

// ofJoins are the fields that only the apply finds out of any machine that joins.
var ofJoins = []step.Field{
	step.FieldStage, step.FieldReady, step.FieldNodeName, step.FieldKubernetesVersion, step.FieldDrift,
}

// join opens what only the apply finds out of a machine that joins. known is what was recorded under its name, and node
// the name that its configuration gives to its node.
func (f *MachineForecast) join(p Set, m Machine, known step.MachineState, node string, other bool) {
	f.Open = append(f.Open, ofJoins...)

	if known.NodeName != "" && known.NodeName == node {
		f.Texts[step.FieldNodeName] = node // a node that is deleted comes back under its name
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
