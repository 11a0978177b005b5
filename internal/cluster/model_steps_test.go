package cluster_test

import (
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

const newDigest = "new"

// What may go wrong with a step.
var (
	errAgain = errors.New("try again")
	errFatal = errors.New("for good")
	// errInVain is that of a component which was not seen to run in time.
	errInVain = errors.New("in vain")
)

// mishap is how a step goes wrong.
type mishap int

const (
	fine mishap = iota
	failsBefore
	failsAfter // the effect happened, its answer was lost
	refused    // for good, before the effect
	neverBack
	rolledBack
)

// operation is a step that is being carried out, one phase in a round.
type operation struct {
	step    cluster.Step
	machine cluster.Machine
	phases  []func() error
}

// mishaps picks what happens to a step.
func (s *site) mishap(rate float64) mishap {
	if s.random.Float64() >= rate {
		return fine
	}

	return mishap(1 + s.random.IntN(int(rolledBack)))
}

// operate begins a step, the way lifecycle carries it out.
func (s *site) operate(m cluster.Machine, step cluster.Step, how mishap) *operation {
	op := &operation{step: step, machine: m}
	b := s.at(m.Address)
	if pod := s.podOf(m); pod != nil && onHost(step) {
		b = pod
	}

	if b == nil && actsOnMachine(step) {
		op.phases = []func() error{func() error { return errAgain }}

		return op
	}

	switch step := step.(type) {
	case cluster.ApplyConfig:
		s.configure(op, b, step, how)
	case cluster.Upgrade:
		s.disrupt(op, b, step.Evacuation, how, func() { s.upgrade(b, step, how) })
	case cluster.DowngradeEtcd:
		s.simply(op, how, func() { s.downgradeEtcd(b, step) })
	case cluster.CancelEtcdDowngrade:
		s.simply(op, how, func() { s.etcd.target = "" })
	case cluster.Uncordon:
		s.simply(op, how, func() { s.cordon(step.Node, false) })
	case cluster.Bootstrap:
		s.simply(op, how, func() { b.asked = true })
	case cluster.Restore:
		s.simply(op, how, func() { b.asked, b.restored = true, s.now })
	case cluster.WriteMeta:
		s.simply(op, how, func() {})
	case cluster.LeaveEtcd:
		s.disrupt(op, b, step.Evacuation, how, func() {
			s.dropMember(b.member)
			b.data, b.left, b.member = false, true, ""
		})
	case cluster.RemoveMember:
		s.simply(op, how, func() { s.dropMember(step.Member) })
	case cluster.ReplaceVolumes:
		s.disrupt(op, b, cluster.Evacuation{}, how, func() { s.replaceVolumes(b) })
	case cluster.Reset:
		s.disrupt(op, b, step.Evacuation, how, func() {
			b.wipe()

			if b.pod != nil {
				b.life = gone

				return
			}

			b.disrupted = true
			s.leaves(b, maintenance, how)
		})
	case cluster.DeleteNode:
		s.simply(op, how, func() { s.deleteNode(step.Node) })
	case cluster.PullImages:
		s.simply(op, how, func() {})
	case cluster.RestartKubelet:
		s.simply(op, how, func() { s.register(b) })
	case cluster.UpgradeComponent:
		s.upgradeComponent(op, b, step, how)
	case cluster.SyncManifests:
		s.syncManifests(op, b, step, how)
	}

	return op
}

// actsOnMachine is false for steps that something else than the machine carries out.
func actsOnMachine(step cluster.Step) bool {
	switch step.(type) {
	case cluster.Uncordon, cluster.RemoveMember, cluster.DeleteNode:
		return false
	default:
		return true
	}
}

// simply is a step of one call.
func (s *site) simply(op *operation, how mishap, effect func()) {
	op.phases = []func() error{func() error {
		switch how {
		case failsBefore:
			return errAgain
		case refused:
			return errFatal
		case failsAfter:
			effect()

			return errAgain
		default:
			effect()

			return nil
		}
	}}
}

// disrupt is a step that evacuates first, and gives the node back when it fails before its
// effect.
func (s *site) disrupt(op *operation, b *box, e cluster.Evacuation, how mishap, effect func()) {
	op.phases = append(op.phases, func() error { s.cordon(e.Node, true); return nil })

	if e.Drain {
		for range s.random.IntN(3) {
			op.phases = append(op.phases, func() error { return nil })
		}
	}

	op.phases = append(op.phases, func() error {
		switch how {
		case failsBefore, refused:
			s.cordon(e.Node, false)

			if how == refused {
				return errFatal
			}

			return errAgain
		case failsAfter:
			effect()

			b.inRun, b.hop = 0, "" // the run does not know that it was the one

			return errAgain
		default:
			effect()

			return nil
		}
	})
}

func (s *site) configure(op *operation, b *box, step cluster.ApplyConfig, how mishap) {
	apply := func() {
		b.digest, b.staged = step.Digest, ""
		b.heal("config")
	}

	switch {
	case step.Access == cluster.Maintenance:
		s.simply(op, how, func() {
			apply()
			b.version, b.schematic, b.controlPlane = op.machine.TalosVersion, op.machine.Schematic,
				op.machine.Role == cluster.ControlPlane
			b.kube.images = s.imagesToJoin(op.machine, step.Kubernetes)
			s.leaves(b, booting, how)
		})
	case step.Staged != "":
		s.simply(op, how, func() { b.staged = step.Digest })
	case step.Reboot == "":
		s.simply(op, how, apply)
	default:
		s.disrupt(op, b, step.Evacuation, how, func() {
			apply()
			s.restarts(b)
			s.leaves(b, booting, how)
		})
	}
}

func (s *site) upgrade(b *box, step cluster.Upgrade, how mishap) {
	if b.pod != nil {
		s.replacePod(b, step, how)

		return
	}

	if how != rolledBack {
		b.version = step.To
		if step.Schematic != "" {
			b.schematic = step.Schematic
		}

		b.heal("upgrade")
	}

	s.leaves(b, booting, how)
}

// leaves takes a machine away, for good where that is what happens.
func (s *site) leaves(b *box, next life, how mishap) {
	if how == neverBack {
		b.life = off

		return
	}

	s.goAway(b, next)
}

func (s *site) cordon(node string, cordoned bool) {
	for _, n := range s.nodes {
		if n.name == node && !n.foreign {
			n.ours = cordoned
		}
	}
}

func (s *site) deleteNode(name string) {
	for i, n := range s.nodes {
		if n.name == name {
			s.nodes = append(s.nodes[:i:i], s.nodes[i+1:]...)

			return
		}
	}
}

// began is what the observer notes when a step begins.
func (e *eye) began(step cluster.Step) {
	state := e.states[step.On()]
	state.Busy = "in progress: " + step.String()

	switch step := step.(type) {
	case cluster.Bootstrap, cluster.Restore:
		state.BootstrapSent, state.Fresh = true, false
	case cluster.ApplyConfig:
		state.FirstBoot = state.FirstBoot || step.Access != cluster.Member
	case cluster.PullImages, cluster.UpgradeComponent, cluster.SyncManifests:
		state.InUpgrade = true
	}

	e.states[step.On()] = state
}

// ended is what the observer notes when a step ends.
func (e *eye) ended(step cluster.Step, err error) {
	s := e.states[step.On()]
	s.Busy, s.InUpgrade = "", false

	if err == nil {
		switch step := step.(type) {
		case cluster.ApplyConfig:
			if s.Access == cluster.Maintenance {
				unseen(&s)
			} else if step.Reboot != "" {
				s.RebootedFrom = s.BootID
				unseen(&s)
			}
		case cluster.Upgrade:
			s.Upgraded = cluster.UpgradeMark{BootID: s.BootID, Version: step.To, Schematic: step.Schematic}
			upgraded(&s)
		case cluster.ReplaceVolumes:
			unseen(&s)
		case cluster.Bootstrap, cluster.Restore:
			s.BootstrapRequested = true
		case cluster.Reset:
			s.Resetting = true
		case cluster.RestartKubelet:
			s.KubeletRestarted = true
		case cluster.PullImages:
			s.Pulled = step.Version
		case cluster.UpgradeComponent:
			s.Images = withImage(s.Images, step.Component, step.Image)
		case cluster.SyncManifests:
			e.manifests = step.Version
		}
	}

	e.states[step.On()] = s
}

// upgraded notes what an upgrade left behind, as lifecycle does.
func upgraded(s *cluster.MachineState) {
	switch {
	case s.Access == cluster.Maintenance:
	case s.Stopped:
		s.RebootedFrom = "nothing"
	default:
		s.RebootedFrom = s.BootID
	}

	unseen(s)
}

func unseen(s *cluster.MachineState) {
	s.Access, s.Stage, s.Ready, s.Cause = cluster.Unreachable, "", false, "just rebooted"
	s.Stopped, s.VolumesLost = false, false
}

// purpose names a disruption that must not be repeated once it succeeded, as in lifecycle.
func purpose(step cluster.Step) string {
	switch s := step.(type) {
	case cluster.ApplyConfig:
		if s.Reboot != "" {
			return fmt.Sprintf("%s configuration %s", s.Machine, s.Digest)
		}
	case cluster.Upgrade:
		return fmt.Sprintf("%s upgrade %s %s", s.Machine, s.To, s.Schematic)
	}

	return ""
}
