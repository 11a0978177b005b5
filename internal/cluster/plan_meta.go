package cluster

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// planMeta decides which members get META values: those in which a wanted key is missing or differs. Other keys are
// never changed.
//
// A network configuration is special: Talos on metal applies it as soon as it is written (Talos 1.13), and a wrong
// one makes the machine unreachable. So such writes wait for [networkMustStay].
func planMeta(want Spec, have Snapshot, d *Decision) {
	for _, m := range want.all() {
		s := have.Machines[m.Name]

		missing := metakey.Missing(m.Meta, s.Meta)
		if len(missing) == 0 || !acceptsMeta(s) || d.concerns(m.Name) {
			continue
		}

		step := step.WriteMeta{Machine: m.Name, Keys: metakey.Texts(missing)}

		if step.ChangesNetwork() {
			if reason := networkMustStay(want, have, m, d); reason != "" {
				d.hold(m.Name, "network change (META %s) waits: %s", metakey.Text(metakey.Network), reason)

				continue
			}
		}

		d.step(step)
	}
}

// acceptsMeta is true for members without a running sequence: during an installation META is not on the disk yet.
func acceptsMeta(s step.MachineState) bool {
	return s.Access == step.Member && s.Busy == "" && (s.Stage == step.StageBooting || s.Stage == step.StageRunning)
}

// networkMustStay says why the network of a machine does not change now; empty when it may. Networks change one
// machine at a time, and only while every other machine answers. Once there is an etcd, every other control plane
// must be complete. So a wrong configuration costs at most the one machine that gets it.
func networkMustStay(want Spec, have Snapshot, m Machine, d *Decision) string {
	if i := slices.IndexFunc(d.Steps, changesNetwork); i >= 0 {
		return d.Steps[i].On() + " is changed first"
	}

	if i := slices.IndexFunc(d.Steps, step.Step.Disrupts); i >= 0 {
		return d.Steps[i].On() + " goes out of service"
	}

	guarded := want.Bootstrapped || len(have.Etcd.Members) > 0

	for _, other := range want.all() {
		s := have.Machines[other.Name]

		switch {
		case other.Name == m.Name:
		case s.Busy != "":
			return other.Name + " is " + s.Busy
		case s.Access == step.Unreachable || s.Access == step.Unobserved:
			return other.Name + " does not respond" + Because(s.Cause)
		case guarded && other.Role == step.ControlPlane:
			if reason := NotReady(want, have, other); reason != "" {
				return other.Name + ": " + reason
			}
		}
	}

	return ""
}

func changesNetwork(s step.Step) bool {
	write, ok := s.(step.WriteMeta)

	return ok && write.ChangesNetwork()
}
