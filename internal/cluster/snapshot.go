package cluster

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Snapshot is one observation of a cluster.
type Snapshot struct {
	// Time of the observation. The planner has no other clock.
	Time time.Time
	// Window is the state of the maintenance window.
	Window Window
	// Machines by their name in the spec. A missing machine was not asked yet.
	Machines map[string]step.MachineState
	// Peers are the control planes outside the spec that etcd knows, by member ID.
	Peers      map[string]step.MachineState
	Etcd       etcdstate.State
	Kubernetes kubestate.State
	// Founder names the machine on which another run of this process began the etcd of this cluster, or is about to;
	// empty when none did.
	Founder string
	// Elsewhere is what other runs of this process do to the Kubernetes of the cluster.
	Elsewhere Elsewhere
	// Rejoining are the control planes that other runs of this process replace.
	Rejoining []Rejoining
	// Hooks are the names of the hooks that a run began and none ended; nil where they are unknown.
	Hooks []string

	// nodes are the positions of the nodes by name, in copies that a plan works with.
	nodes map[string]int
	// networked is set in the model of a plan when the cluster had a network before it lost its etcd, which the snapshot
	// restores.
	networked bool
}

// Window is the state of a maintenance window at the time of an observation; its zero value is open. Outside it,
// nothing is taken out of service.
type Window struct {
	Closed bool
	// Opens is when it opens again; zero where it never does.
	Opens time.Time
	// Refuses is true where the run does not wait for that: the user does not want it, or the run ends before.
	Refuses bool
}

// Rejoining is a control plane that a run of this process takes out of the cluster to create it again. It counts
// until its create ends with a ready machine.
type Rejoining struct {
	// Name is its name in messages.
	Name string
	// Since is when it was out of the cluster, wiped; zero until then.
	Since time.Time
	// Joins is true once its create has begun. Failed is true when its removal or its create ended with an error.
	Joins, Failed bool
}

// Elsewhere is the Standing of all other runs of this process on the same cluster when a snapshot was taken.
type Elsewhere struct {
	Standing

	// QuietSince is since when none of them moves anything; zero while one does, and where it is unknown.
	QuietSince time.Time
}

// Standing is what one or several runs still do to API servers and kubelets that other runs wait for.
type Standing struct {
	// Undecided is true while a run decides the version with which an API server starts, which may be older than all
	// running ones.
	Undecided bool
	// Moves is true while a run will upgrade or remove API servers, or downgrade kubelets, and waits for no other run.
	Moves bool
	// Oldest is the oldest kube-apiserver version that the machines of a run have or get, even if Kubernetes does not
	// show it; empty for none.
	Oldest string
}

// indexed is the snapshot with indexed nodes, so that a plan goes through them once and not once for every machine.
func (s Snapshot) indexed() Snapshot {
	if s.nodes != nil {
		return s
	}

	s.nodes = make(map[string]int, len(s.Kubernetes.Nodes))

	for i, n := range slices.Backward(s.Kubernetes.Nodes) {
		s.nodes[n.Name] = i
	}

	return s
}

// RoleOf is the role of the machine of a node.
func RoleOf(n kubestate.Node) step.Role {
	if n.ControlPlane {
		return step.ControlPlane
	}

	return step.Worker
}

// ended is true for a machine that was fully reset, or shut down instead.
func (m Machine) ended(s step.MachineState) bool {
	return s.Access == step.Gone || m.wentAway(s) ||
		s.Access == step.Maintenance && !m.Platform().Deleted && !m.hidesHardware(s)
}

// wentAway is true for a machine that was reset or shut down and is silent, as it is meant to be.
func (m Machine) wentAway(s step.MachineState) bool {
	return m.Reset.StaysAway() && s.Resetting && s.Access == step.Unreachable && s.Busy == ""
}

// stillResetting is the unfinished result of a reset, or of the shutdown instead of it.
func (m Machine) stillResetting() string {
	if m.Reset.ShutDown {
		return "was shut down and still responds"
	}

	return m.Platform().Resetting
}

// NodeOf finds the Kubernetes node of a machine: by the node name that Talos reports, or, if that is unknown, by its
// address.
func (s Snapshot) NodeOf(m Machine) (kubestate.Node, bool) {
	return s.nodeNamed(s.nodeName(m), m.Address)
}

// nodeName is the name of a machine's node as the machine reports it, or as its platform names it.
func (s Snapshot) nodeName(m Machine) string {
	name := s.Machines[m.Name].NodeName
	if name == "" && m.Platform().NamesNode {
		return m.NodeName
	}

	return name
}

// nodeNamed finds a node by its name, or by an address where the name is unknown.
func (s Snapshot) nodeNamed(name, address string) (kubestate.Node, bool) {
	if s.nodes != nil && name != "" {
		if i, ok := s.nodes[name]; ok {
			return s.Kubernetes.Nodes[i], true
		}

		return kubestate.Node{}, false
	}

	i := slices.IndexFunc(s.Kubernetes.Nodes, func(n kubestate.Node) bool {
		if name != "" {
			return n.Name == name
		}

		return slices.ContainsFunc(n.Addresses, func(a string) bool { return sameHost(a, address) })
	})
	if i < 0 {
		return kubestate.Node{}, false
	}

	return s.Kubernetes.Nodes[i], true
}

// MemberOf finds the etcd member of a machine: the one that the machine reports, or the one with its peer address. A
// member that has not started and announced an address is found by the node name.
func (s Snapshot) MemberOf(m Machine) (etcdstate.Member, bool) {
	name := s.nodeName(m)

	if member, ok := s.Etcd.Member(s.Machines[m.Name].MemberID); ok {
		return member, true
	}

	return s.memberWith(func(e etcdstate.Member) bool {
		if name != "" && e.Name == name {
			return true
		}

		return hasPeerAt(e, m.Address)
	})
}

// hasPeerAt is true for a member that others connect to at an address.
func hasPeerAt(e etcdstate.Member, address string) bool {
	return slices.ContainsFunc(e.PeerURLs, func(u string) bool {
		parsed, err := url.Parse(u)

		return err == nil && sameHost(parsed.Hostname(), address)
	})
}

func (s Snapshot) memberWith(is func(etcdstate.Member) bool) (etcdstate.Member, bool) {
	i := slices.IndexFunc(s.Etcd.Members, is)
	if i < 0 {
		return etcdstate.Member{}, false
	}

	return s.Etcd.Members[i], true
}

// sameHost compares two hosts; IP addresses by value, so that the spellings of one IPv6 address are one host.
func sameHost(a, b string) bool {
	ipA, errA := netip.ParseAddr(a)
	ipB, errB := netip.ParseAddr(b)

	if errA == nil && errB == nil {
		return ipA.Unmap() == ipB.Unmap()
	}

	return strings.EqualFold(a, b)
}

// hidesHardware is true where the machine that waits in maintenance mode at an address does not report the known
// hardware UUID, and this run did not reset it: the known machine may work elsewhere.
func (m Machine) hidesHardware(s step.MachineState) bool {
	return s.Access == step.Maintenance && !s.Resetting && m.UUID != "" && !m.Proven(s)
}
