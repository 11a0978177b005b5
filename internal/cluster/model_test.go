package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// This file and its neighbors model_*_test.go are a model of a cluster: machines, an etcd and a Kubernetes API that
// behave as those of Talos 1.13 and do not know the planner. rollout_test.go runs plans on it and checks the
// invariants.

// life is the stage of a machine.
type life string

const (
	off         life = "off"         // permanently
	away        life = "away"        // rebooting or installing
	maintenance life = "maintenance" // without a configuration
	gone        life = "gone"        // a pod that no longer exists, and neither do its volumes
	booting     life = "booting"
	running     life = "running"
)

// box is a machine as hardware.
type box struct {
	uuid, addr, name string // name is that of its node
	life, next       life   // next is what follows away
	timer            int
	boot             int
	controlPlane     bool
	foreign          bool // belongs to another cluster
	others           bool // another resource's, by the mark on its node
	impostor         bool // another machine answers at its address, in maintenance mode
	wiped            bool // by hand

	version, schematic, digest string
	staged                     string // the configuration of its next boot, where it differs
	kube                       *kubeBox
	// needsReboot is true when the old configuration differs in a way that needs a reboot.
	needsReboot bool

	sick       bool // its node never gets Ready
	etcdBroken bool // its etcd does not start
	stuck      bool // its member stays a learner
	repair     string

	data, left, asked bool // of etcd: has data, left it, was asked to bootstrap
	member            string
	restored          time.Time // when the data was restored from a snapshot
	dataOf            string    // the minor etcd version of the data

	pod *podBox // nil for metal

	keyring

	// disrupted is set from the moment a step takes the machine out of service until it works again.
	disrupted bool
	inRun     int    // the run that did so
	hop       string // the version of the upgrade that disrupted it
}

type etcdMember struct {
	id      string
	box     *box
	learner bool
	// peer is the address at which the other members connect to it.
	peer string
}

type kubeNode struct {
	name          string
	box           *box
	ours, foreign bool // which client cordoned it
	soak          kubestate.Soak
	marked        bool   // by talosop, as its own
	staged        string // the boot in which its machine got a configuration for the next one
	keys          rotation.Keys
}

// bootID identifies a boot of the machine.
func (b *box) bootID() string { return fmt.Sprint(b.uuid, "/", b.boot) }

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
	// manifests is the version of the bootstrap manifests in the cluster, and pinned the versions of images that do not
	// show theirs.
	manifests string
	// madeFrom is the digest of the configuration that they come from, if this run synced them.
	madeFrom string
	// proxy is the image of kube-proxy's DaemonSet; empty where there is none.
	proxy   string
	pinned  map[string]string
	pins    map[naming]string
	noProxy bool
	// wantedVersion is the Kubernetes version of the spec, and joinVersion the one of a machine that joins without
	// images.
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

// votes counts the voting members, and the working ones, without one of them.
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

// well is true for a machine that works.
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

// tick lets every machine progress by itself, and reports whether any did.
func (s *site) tick() (moved bool) {
	for _, b := range s.boxes {
		moved = s.progress(b) || moved
	}

	return s.announce() || s.tickEtcd() || s.tickKubernetes() || moved
}

// progress lets one machine progress by itself, and reports whether it did.
func (s *site) progress(b *box) (moved bool) {
	before, joined := *b, s.membership(b)

	switch {
	case b.foreign:
	case b.life == away:
		if b.timer--; b.timer <= 0 {
			b.life = b.next
			b.boot++
			s.starts(b)
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

	return moved || before != *b || joined != s.membership(b)
}

// membership is what the machine is in etcd, and how many members there are.
func (s *site) membership(b *box) string {
	m := s.memberOf(b)

	return fmt.Sprint(len(s.members), m != nil, m != nil && m.learner)
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
	case b.left: // its etcd starts again with the next boot
	case !b.data && all > 0 && s.joinable() && s.admits(b):
		s.addMember(b, true)
	case m != nil && m.learner && s.quorum() && !b.stuck:
		m.learner = false
	case m != nil && !m.learner && s.etcdUp(b):
		b.life = running
	}
}

// joinable is true when etcd accepts another member: all work, and none is a learner (etcd 3.6, mayAddMember and
// ErrTooManyLearners).
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

// goAway reboots a machine, which returns with its staged configuration.
func (s *site) goAway(b *box, next life) {
	if b.staged != "" {
		b.digest, b.staged = b.staged, ""
		b.heal("config")
	}

	b.life, b.next, b.timer = away, next, 1+s.random.IntN(4)
}

// wipe removes everything from a machine that came from its cluster.
func (b *box) wipe() {
	b.digest, b.data, b.left, b.asked, b.member, b.disrupted, b.restored = "", false, false, false, "", false, time.Time{}
	b.staged, b.keyring = "", keyring{}
	b.sick, b.etcdBroken, b.stuck = false, false, false
	b.kube = newKubeBox()
}

// heal ends a failure that a change repairs.
func (b *box) heal(repair string) {
	if b.repair == repair {
		b.sick, b.etcdBroken = false, false
	}
}

// recovered records machines that work again.
func (s *site) recovered(idle func(*box) bool) {
	for _, b := range s.boxes {
		if b.disrupted && idle(b) && (s.well(b) || b.life == maintenance || b.life == gone) {
			b.disrupted, b.hop = false, ""
		}
	}
}
