package cluster_test

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// podBox is the pod of a machine on a host cluster.
type podBox struct {
	ip       string
	service  string // the stable address of its etcd; some have none
	outdated bool   // made from another specification than the wanted one
	bad      bool   // nothing ever runs in it, because of its specification
	lost     bool   // its volumes are permanently lost
	ran      string
}

// peer is the address at which other machines reach a machine.
func (b *box) peer() string {
	switch {
	case b.pod == nil:
		return b.addr
	case b.pod.service != "":
		return b.pod.service
	default:
		return b.pod.ip
	}
}

// podOf is the box of a machine that is a pod, even if it does not answer.
func (s *site) podOf(m cluster.Machine) *box {
	i := slices.IndexFunc(s.boxes, func(b *box) bool { return b.pod != nil && b.addr == m.Address })
	if i < 0 {
		return nil
	}

	return s.boxes[i]
}

// onHost is true for steps that the host cluster carries out.
func onHost(op step.Step) bool {
	switch op.(type) {
	case step.Upgrade, step.Reset, step.ReplaceVolumes:
		return true
	default:
		return false
	}
}

// newPod gives a machine a new pod with another address.
func (s *site) newPod(b *box) {
	s.ids++
	b.pod.ip = fmt.Sprintf("10.9.0.%d", s.ids)
	b.pod.outdated, b.pod.bad = false, false
}

func (s *site) replacePod(b *box, step step.Upgrade, how failure) {
	blank := b.life == maintenance || b.digest == ""

	s.newPod(b)

	if how != rolledBack {
		b.version = step.To
		b.heal("upgrade")
	}

	next := booting
	if blank {
		next = maintenance
	}

	s.leaves(b, next, how)
}

func (s *site) replaceVolumes(b *box) {
	b.wipe()
	s.newPod(b)

	b.pod.lost, b.disrupted = false, true
	s.goAway(b, maintenance)
}

// restarts is what happens to the pod of a machine that reboots: Talos restarts in it, or it is recreated.
func (s *site) restarts(b *box) {
	if b.pod != nil && s.random.IntN(2) == 0 {
		outdated := b.pod.outdated
		s.newPod(b)

		b.pod.outdated = outdated
	}
}

// announce updates the advertised addresses of members some time after their etcd is healthy (Talos 1.13,
// AdvertisedPeerController).
func (s *site) announce() (moved bool) {
	for _, m := range s.members {
		if m.peer != m.box.peer() && m.id == m.box.member && s.etcdUp(m.box) && s.quorum() {
			moved = true

			if s.random.IntN(3) == 0 {
				m.peer = m.box.peer()
			}
		}
	}

	return moved
}

// reach is true for members that can connect: one of them must know the other's address.
func (m *etcdMember) reach(other *etcdMember) bool {
	return m == other || m.peer == m.box.peer() || other.peer == other.box.peer()
}

// votesNow is true for a voting member whose etcd serves.
func (s *site) votesNow(m *etcdMember) bool {
	return !m.learner && m.id == m.box.member && s.etcdUp(m.box)
}

// connected is the largest number of voting members that reach one possible leader.
func (s *site) connected() int {
	most := 0

	for _, leader := range s.members {
		with := 0

		for _, m := range s.members {
			if s.votesNow(leader) && s.votesNow(m) && leader.reach(m) {
				with++
			}
		}

		most = max(most, with)
	}

	return most
}

// podAnswer is what the host cluster adds to the answer of a machine.
func (s *site) podAnswer(b *box, state step.MachineState) step.MachineState {
	p := b.pod

	if b.life == gone {
		return step.MachineState{Access: step.Gone}
	}

	state.UUID, state.Schematic = "", ""
	state.Addresses, state.Current, state.VolumesLost = []string{p.ip}, !p.outdated, p.lost

	if p.service != "" {
		state.Addresses = append(state.Addresses, p.service)
	}

	if state.Access == step.Member {
		state.Platform, p.ran = "container", b.version
	}

	if b.life == off {
		state.Stopped, state.Addresses, state.TalosVersion = true, nil, p.ran
	}

	return state
}

// replaces is why a run must replace the pods of machines.
func (t *trial) replaces() {
	for i := range t.want.Machines {
		if m := &t.want.Machines[i]; m.Container {
			m.Replace = ""

			if t.meant[m.Name].pod.outdated {
				m.Replace = "memory 2Gi -> 4Gi"
			}
		}
	}
}

// randomPods makes every machine of the spec a pod. Some are not as wanted or do not run.
func (t *trial) randomPods() {
	for _, machines := range [][]cluster.Machine{t.want.Machines, t.want.Removed} {
		for i := range machines {
			m := &machines[i]
			b := t.meant[m.Name]
			m.Container, m.UUID, m.NodeName, m.InstallTarget, m.Schematic = true, "", b.name, "", ""
			b.schematic, b.pod = "", &podBox{ran: b.version}

			if t.random.IntN(2) == 0 {
				t.ids++
				b.pod.service = fmt.Sprintf("10.96.0.%d", t.ids)
			}

			t.newPod(b)

			for _, member := range t.members {
				if member.box == b {
					member.peer = b.peer()
				}
			}
		}
	}

	rate := []float64{0, 0.1, 1}[t.random.IntN(3)]

	for _, m := range t.want.Machines {
		b := t.meant[m.Name]
		b.pod.outdated = t.chance(rate)
	}

	if t.whole {
		return
	}

	t.randomPodFaults()
}

func (t *trial) randomPodFaults() {
	for _, m := range t.want.Machines {
		b := t.meant[m.Name]
		if b.foreign || !t.chance(t.ail) {
			continue
		}

		switch t.random.IntN(4) {
		case 0: // its specification is invalid
			b.life, b.pod.outdated, b.pod.bad = off, true, true
		case 1:
			b.life, b.pod.lost = off, true
		case 2: // just replaced
			if m := t.memberOf(b); m != nil && b.pod.service == "" {
				m.peer = "10.9.9.9"
			}
		}
	}

	for _, m := range t.want.Removed {
		b := t.meant[m.Name]
		member := t.memberOf(b)

		switch fate := t.random.IntN(10); {
		case fate < 2:
			b.wipe()
			b.life = gone
		case fate < 4 && member != nil && b.pod.service == "":
			member.peer = "10.9.9.9"
		}
	}
}

// pods checks what a step does to pods and what etcd knows about them.
func (j *judge) pods(op step.Step, b *box) {
	if b.pod == nil {
		return
	}

	switch op := op.(type) {
	case step.ReplaceVolumes:
		j.volumes(op, b)
	case step.Upgrade, step.LeaveEtcd, step.ApplyConfig:
		apply, configures := op.(step.ApplyConfig)
		if !b.controlPlane || b.digest == "" || configures && apply.Reboot == "" || !j.quorum() {
			return
		}

		for _, m := range j.members {
			if m.box != b && m.id == m.box.member && j.etcdUp(m.box) && m.peer != m.box.peer() {
				j.fail("%q while etcd knows %s at the address of a former pod", op, m.box.name)
			}
		}
	}
}

// volumes checks that only lost data is given up, and only data that others have.
func (j *judge) volumes(step step.ReplaceVolumes, b *box) {
	if !b.pod.lost {
		j.fail("%q, which are not lost", step)
	}

	for _, m := range j.members {
		if m.box != b || m.learner {
			continue
		}

		if all, healthy := j.votes(m); healthy <= all/2 {
			j.fail("%q while %d of %d other members work", step, healthy, all)
		}
	}
}
