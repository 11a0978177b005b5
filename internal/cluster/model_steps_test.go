package cluster_test

import (
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

const newDigest = "new"

// The failures of a step.
var (
	errAgain = errors.New("try again")
	errFatal = errors.New("for good")
	// errInVain is the error of a component that was not observed to run in time.
	errInVain = errors.New("in vain")
)

// failure is how a step fails.
type failure uint8

const (
	fine failure = iota
	failsBefore
	failsAfter // the effect happened, its answer was lost
	refused    // permanently, before the effect
	neverBack
	rolledBack
)

// operation is a running step, one phase in a round.
type operation struct {
	step    step.Step
	machine cluster.Machine
	phases  []func() error
	// effect is the phase that has the effect: the first one, or the one after the evacuation.
	effect int
}

// failure picks how a step fails.
func (s *site) failure(rate float64) failure {
	if s.random.Float64() >= rate {
		return fine
	}

	return failure(1 + s.random.IntN(int(rolledBack)))
}

// operate begins a step as lifecycle carries it out.
func (s *site) operate(m cluster.Machine, next step.Step, how failure) *operation {
	op := &operation{step: next, machine: m}
	b := s.target(m, next)

	if b == nil && actsOnMachine(next) {
		op.phases = []func() error{func() error { return errAgain }}

		return op
	}

	switch next := next.(type) {
	case step.ApplyConfig:
		s.configure(op, b, next, how)
	case step.Upgrade:
		s.disrupt(op, b, next.Evacuation, how, func() { s.upgrade(b, next, how) })
	case step.DowngradeEtcd:
		if !s.etcdUp(b) {
			op.phases = []func() error{func() error { return errAgain }}

			return op
		}

		s.simply(op, how, func() { s.downgradeEtcd(b, next) })
	case step.CancelEtcdDowngrade:
		s.simply(op, how, func() { s.etcd.target = "" })
	case step.Uncordon:
		s.simply(op, how, func() { s.cordon(next.Node, false) })
	case step.TakeOwnership:
		s.simply(op, how, func() { s.mark(next.Node) })
	case step.NoteStaged:
		s.simply(op, how, func() { s.noteStaged(next.Node, next.Waits) })
	case step.Bootstrap:
		s.simply(op, how, func() { b.asked = true })
	case step.Restore:
		s.simply(op, how, func() { b.asked, b.restored = true, s.now })
	case step.WriteMeta:
		s.simply(op, how, func() {})
	case step.LeaveEtcd:
		s.disrupt(op, b, next.Evacuation, how, func() {
			s.dropMember(b.member)
			b.data, b.left, b.member = false, true, ""
		})
	case step.RemoveMember:
		s.simply(op, how, func() { s.dropMember(next.Member) })
	case step.ReplaceVolumes:
		s.disrupt(op, b, step.Evacuation{}, how, func() { s.replaceVolumes(b) })
	case step.Reset:
		s.disrupt(op, b, next.Evacuation, how, func() {
			b.wipe()

			if b.pod != nil {
				b.life = gone

				return
			}

			b.disrupted = true
			s.leaves(b, maintenance, how)
		})
	case step.DeleteNode:
		s.simply(op, how, func() { s.deleteNode(next.Node) })
	case step.PullImages:
		s.simply(op, how, func() {})
	case step.RestartKubelet:
		s.simply(op, how, func() { s.register(b) })
	case step.UpgradeComponent:
		s.upgradeComponent(op, b, next, how)
	case step.SyncManifests:
		s.syncManifests(op, b, next, how)
	}

	return op
}

// target is what carries a step out: the machine that answers, or the pod on the host; nil for none.
func (s *site) target(m cluster.Machine, next step.Step) *box {
	if pod := s.podOf(m); pod != nil && onHost(next) {
		return pod
	}

	return s.at(m.Address)
}

// actsOnMachine is false for steps that are not carried out by the machine.
func actsOnMachine(next step.Step) bool {
	switch next.(type) {
	case step.Uncordon, step.RemoveMember, step.DeleteNode, step.Soak, step.TakeOwnership,
		step.NoteStaged:
		return false
	default:
		return true
	}
}

// simply is a step of one call.
func (s *site) simply(op *operation, how failure, effect func()) {
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

// disrupt is a step that evacuates first, and uncordons the node when it fails before its effect.
func (s *site) disrupt(op *operation, b *box, e step.Evacuation, how failure, effect func()) {
	op.phases = append(op.phases, func() error { s.cordon(e.Node, true); return nil })

	if e.Drain {
		for range s.random.IntN(3) {
			op.phases = append(op.phases, func() error { return nil })
		}
	}

	op.effect = len(op.phases)
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

			b.inRun, b.hop = 0, "" // the run does not know that it caused this

			return errAgain
		default:
			effect()

			return nil
		}
	})
}

func (s *site) configure(op *operation, b *box, next step.ApplyConfig, how failure) {
	apply := func() {
		b.digest, b.staged = next.Digest, ""
		b.heal("config")
		s.getsKeys(b, next.Keys)
	}

	switch {
	case next.Access == step.Maintenance:
		s.simply(op, how, func() {
			b.version, b.schematic, b.controlPlane = op.machine.TalosVersion, op.machine.Schematic,
				op.machine.Role == step.ControlPlane
			apply()
			b.kube.images = s.imagesToJoin(op.machine, next.Kubernetes)
			s.leaves(b, booting, how)
		})
	case next.Staged != "":
		s.simply(op, how, func() { b.staged = next.Digest })
	case next.Reboot == "":
		s.simply(op, how, apply)
	default:
		s.disrupt(op, b, next.Evacuation, how, func() {
			apply()
			s.restarts(b)
			s.leaves(b, booting, how)
		})
	}
}

func (s *site) upgrade(b *box, next step.Upgrade, how failure) {
	if b.pod != nil {
		s.replacePod(b, next, how)

		return
	}

	if how != rolledBack {
		b.version = next.To
		if next.Schematic != "" {
			b.schematic = next.Schematic
		}

		b.heal("upgrade")
	}

	s.leaves(b, booting, how)
}

// leaves takes a machine out of service, possibly permanently.
func (s *site) leaves(b *box, next life, how failure) {
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

func (s *site) mark(node string) {
	for _, n := range s.nodes {
		n.marked = n.marked || n.name == node
	}
}

func (s *site) noteStaged(node string, waits bool) {
	for _, n := range s.nodes {
		switch {
		case n.name != node:
		case waits:
			n.staged = n.box.bootID()
		default:
			n.staged = ""
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

// began is what the observer records when a step begins.
func (o *observer) began(next step.Step) {
	state := o.states[next.On()]
	state.Busy = "in progress: " + next.String()

	switch next := next.(type) {
	case step.Bootstrap, step.Restore:
		state.BootstrapSent, state.Fresh = true, false
	case step.ApplyConfig:
		state.FirstBoot = state.FirstBoot || next.Access != step.Member

		if next.Access == step.Member && next.Reboot+next.Staged == "" && !state.Keys.SamePods(next.Keys) {
			state.StampsBefore = state.StaticPods
		}
	case step.PullImages, step.UpgradeComponent, step.SyncManifests:
		state.InUpgrade = true
	}

	o.states[next.On()] = state
}

// ended is what the observer records when a step ends.
func (o *observer) ended(next step.Step, err error) {
	s := o.states[next.On()]
	s.Busy, s.InUpgrade = "", false

	if err == nil {
		switch next := next.(type) {
		case step.ApplyConfig:
			if s.Access == step.Maintenance {
				unseen(&s)
			} else if next.Reboot != "" {
				s.RebootedFrom = s.BootID
				unseen(&s)
			}
		case step.Upgrade:
			s.Upgraded = step.UpgradeMark{BootID: s.BootID, Version: next.To, Schematic: next.Schematic}
			upgraded(&s)
		case step.ReplaceVolumes:
			unseen(&s)
		case step.Bootstrap, step.Restore:
			s.BootstrapRequested = true
		case step.Reset:
			s.Resetting = true
		case step.RestartKubelet:
			s.KubeletRestarted = true
		case step.PullImages:
			s.Pulled = next.Version
		case step.UpgradeComponent:
			for _, part := range next.Each() {
				s.Images = withImage(s.Images, part.Component, part.Image)
			}
		case step.SyncManifests:
			o.manifests = next.Version
		}
	}

	o.states[next.On()] = s
}

// upgraded records the effects of an upgrade, as lifecycle does.
func upgraded(s *step.MachineState) {
	switch {
	case s.Access == step.Maintenance:
	case s.Stopped:
		s.RebootedFrom = "nothing"
	default:
		s.RebootedFrom = s.BootID
	}

	unseen(s)
}

func unseen(s *step.MachineState) {
	s.Access, s.Stage, s.Ready, s.Cause = step.Unreachable, "", false, "just rebooted"
	s.Stopped, s.VolumesLost = false, false
}

// purpose names a disruption that must not be repeated once it succeeded, as in lifecycle.
func purpose(next step.Step) string {
	switch s := next.(type) {
	case step.ApplyConfig:
		if s.Reboot != "" {
			return fmt.Sprintf("%s configuration %s", s.Machine, s.Digest)
		}
	case step.Upgrade:
		return fmt.Sprintf("%s upgrade %s %s", s.Machine, s.To, s.Schematic)
	}

	return ""
}
