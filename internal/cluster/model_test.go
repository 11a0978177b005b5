package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// This file and its neighbours model_*_test.go are a cluster of their own: machines, an
// etcd and a Kubernetes API that behave as those of Talos 1.13 do, and know nothing of the
// planner. rollout_test.go runs plans on it and looks for what must never happen.

// life is where a machine is in its life.
type life string

const (
	off         life = "off"         // and never coming back
	away        life = "away"        // rebooting or installing
	maintenance life = "maintenance" // without a configuration
	gone        life = "gone"        // a pod that does not exist any more, nor its volumes
	booting     life = "booting"
	running     life = "running"
)

// box is a machine made of hardware.
type box struct {
	uuid, addr, name string // name is that of its node
	life, next       life   // next is what follows away
	timer            int
	boot             int
	controlPlane     bool
	foreign          bool // belongs to another cluster
	others           bool // another resource's, by the mark on its node
	impostor         bool // somebody else answers at its address, in maintenance mode

	version, schematic, digest string
	staged                     string // the configuration of its next boot, where that is another
	kube                       *kubeBox
	// needsReboot is whether the old configuration differs so that Talos has to reboot.
	needsReboot bool

	sick       bool // its node never gets Ready
	etcdBroken bool // its etcd does not come up
	stuck      bool // its member stays a learner
	cure       string

	data, left, asked bool // of etcd: has data, left it, was told to begin one
	member            string
	restored          time.Time // when the data began as a snapshot
	dataOf            string    // the minor version of etcd that the data is for

	pod *podBox // nil of metal

	// disrupted is set from the moment a step takes the machine out of service until it
	// works again.
	disrupted bool
	inRun     int    // that did so
	hop       string // the version of the upgrade that disrupted it
}

type etcdMember struct {
	id      string
	box     *box
	learner bool
	// peer is the address at which the other members look for it.
	peer string
}

type kubeNode struct {
	name          string
	box           *box
	ours, foreign bool // who cordoned it
}

// site is the model.
type site struct {
	random  *rand.Rand
	now     time.Time
	boxes   []*box
	members []*etcdMember
	nodes   []*kubeNode
	noCNI   bool
	apiDown bool
	alarm   bool
	split   bool // members disagree about the leader
	etcd    versionsOfEtcd
	// manifests is the version of the bootstrap manifests in the cluster, and pinned the
	// versions of images that do not tell theirs.
	manifests string
	// madeFrom is the digest of the configuration that they are from, if this run synced them.
	madeFrom string
	// proxy is the image of kube-proxy's DaemonSet; empty where there is none.
	proxy   string
	pinned  map[string]string
	pins    map[naming]string
	noProxy bool
	// wantedVersion is that of Kubernetes in the spec, and what a machine joins with that is
	// given no images.
	wantedVersion, joinVersion string
	joinNaming                 naming
	ids                        int

	trace  []string
	broken []string
}

func (s *site) say(format string, args ...any) {
	s.trace = append(s.trace, s.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (s *site) fail(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
	s.say("BROKEN "+format, args...)
}

// at is the machine that answers at an address.
func (s *site) at(addr string) *box {
	for _, b := range s.boxes {
		if (b.addr == addr || b.peer() == addr) && b.answers() {
			return b
		}
	}

	return nil
}

func (b *box) answers() bool { return b.life != off && b.life != away && b.life != gone }

func (b *box) up() bool { return b.life == booting || b.life == running }

func (s *site) memberOf(b *box) *etcdMember {
	for _, m := range s.members {
		if m.box == b && m.id == b.member {
			return m
		}
	}

	return nil
}

// etcdUp is true for a machine whose etcd serves.
func (s *site) etcdUp(b *box) bool {
	return b.up() && b.data && !b.etcdBroken && s.memberOf(b) != nil
}

// votes counts the voting members, and those of them that work, but for one.
func (s *site) votes(but *etcdMember) (all, healthy int) {
	for _, m := range s.members {
		if m == but || m.learner {
			continue
		}

		all++

		if m.id == m.box.member && s.etcdUp(m.box) {
			healthy++
		}
	}

	return all, healthy
}

func (s *site) quorum() bool {
	all, _ := s.votes(nil)

	return all > 0 && s.connected() > all/2
}

func (s *site) api() bool {
	return !s.apiDown && s.quorum() && slices.ContainsFunc(s.boxes, s.servesAPI)
}

func (s *site) ready(n *kubeNode) bool {
	return n.box.life == running && !n.box.sick && !s.noCNI && s.nodeOf(n.box) == n &&
		n.box.kube.works(kubenames.Kubelet) && (!n.box.controlPlane || n.box.kube.works(kubenames.KubeAPIServer))
}

func (s *site) nodeOf(b *box) *kubeNode {
	for _, n := range s.nodes {
		if n.box == b && n.name == b.name {
			return n
		}
	}

	return nil
}

// well is true for a machine that does its part.
func (s *site) well(b *box) bool {
	if b.life != running || b.sick || s.nodeOf(b) == nil || !b.kube.works(kubenames.Kubelet) || b.controlPlane &&
		!b.kube.podsWork() {
		return false
	}

	m := s.memberOf(b)

	return !b.controlPlane || s.etcdUp(b) && !m.learner
}

func (s *site) addMember(b *box, learner bool) {
	s.ids++
	b.data, b.left, b.member, b.dataOf = true, false, fmt.Sprintf("m%d", s.ids), s.etcd.cluster
	s.members = append(s.members, &etcdMember{id: b.member, box: b, learner: learner, peer: b.peer()})
}

func (s *site) dropMember(id string) {
	s.members = slices.DeleteFunc(s.members, func(m *etcdMember) bool { return m.id == id })
}

// tick lets every machine go on by itself; it reports whether any did.
func (s *site) tick() (moved bool) {
	for _, b := range s.boxes {
		before := *b

		switch {
		case b.foreign:
		case b.life == away:
			if b.timer--; b.timer <= 0 {
				b.life = b.next
				b.boot++
				b.left = false // a machine that left etcd joins again when it boots
			}
		case b.life == booting:
			s.boots(b)
		case b.life == running && s.etcdUp(b) && s.quorum() && !b.stuck && s.memberOf(b).learner:
			s.memberOf(b).learner, moved = false, true
		}

		if b.up() && !b.foreign && s.nodeOf(b) == nil && s.api() && b.kube.works(kubenames.Kubelet) &&
			(b.life == running || !b.controlPlane) {
			s.register(b)

			moved = true
		}

		moved = moved || before != *b
	}

	return s.announce() || s.tickEtcd() || s.tickKubernetes() || moved
}

// boots is what a configured machine does until it runs.
func (s *site) boots(b *box) {
	if !b.controlPlane {
		b.life = running

		return
	}

	if !b.data && !b.left && s.quorum() { // Talos 1.13, etcd addMember
		s.members = slices.DeleteFunc(s.members, func(m *etcdMember) bool { return m.box.name == b.name })
	}

	all := len(s.members)

	if !s.opensData(b) {
		return
	}

	switch m := s.memberOf(b); {
	case b.asked && !b.data:
		b.asked = false
		s.addMember(b, false)
	case b.left: // its etcd begins again with the next boot
	case !b.data && all > 0 && s.joinable() && s.admits(b):
		s.addMember(b, true)
	case m != nil && m.learner && s.quorum() && !b.stuck:
		m.learner = false
	case m != nil && !m.learner && s.etcdUp(b):
		b.life = running
	}
}

// joinable is true when etcd takes another member: all work, and none is a learner
// (etcd 3.6, mayAddMember and ErrTooManyLearners).
func (s *site) joinable() bool {
	return s.quorum() && !slices.ContainsFunc(s.members, func(m *etcdMember) bool { return m.learner || !s.etcdUp(m.box) })
}

func (s *site) register(b *box) {
	for _, n := range s.nodes {
		if n.name == b.name {
			n.box = b

			return
		}
	}

	s.nodes = append(s.nodes, &kubeNode{name: b.name, box: b})
}

// goAway reboots a machine, which comes back with the configuration that was staged for that.
func (s *site) goAway(b *box, next life) {
	if b.staged != "" {
		b.digest, b.staged = b.staged, ""
		b.heal("config")
	}

	b.life, b.next, b.timer = away, next, 1+s.random.IntN(4)
}

// wipe takes everything from a machine that it got from its cluster.
func (b *box) wipe() {
	b.digest, b.data, b.left, b.asked, b.member, b.disrupted, b.restored = "", false, false, false, "", false, time.Time{}
	b.staged = ""
	b.sick, b.etcdBroken, b.stuck = false, false, false
	b.kube = newKubeBox()
}

// heal ends an ailment that a change cures.
func (b *box) heal(cure string) {
	if b.cure == cure {
		b.sick, b.etcdBroken = false, false
	}
}

// recovered takes note of machines that work again.
func (s *site) recovered(idle func(*box) bool) {
	for _, b := range s.boxes {
		if b.disrupted && idle(b) && (s.well(b) || b.life == maintenance || b.life == gone) {
			b.disrupted, b.hop = false, ""
		}
	}
}
