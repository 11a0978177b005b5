package machineset

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Record is what state says of the machines of a set.
type Record struct {
	Phase cluster.Phase
	// Machines are machines as the planner begins with them.
	Machines map[string]step.MachineState
	// Seen is what state remembers of machines, which Machines is made of.
	Seen record.Machines
	// Manifests is the Kubernetes whose bootstrap manifests the cluster has.
	Manifests string
	// RestoredFrom is the snapshot that etcd began with last, and RestoredAt when it did.
	RestoredFrom string
	RestoredAt   time.Time
	// Unmanaged are the nodes whose machines no resource has, ordered by name.
	Unmanaged []kubestate.Node
}

// HasMembers reports whether a machine is known to run as a member.
func (r Record) HasMembers() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(r.Machines)),
		func(m step.MachineState) bool { return m.Access == step.Member })
}

// carry moves what is known of a machine to another name.
func (r Record) carry(from, to string) {
	r.Machines[to] = r.Machines[from]
	delete(r.Machines, from)
	r.Seen.Rename(from, to)
}

// Peers are the addresses at which the etcd of others finds machines in containers. One that is gone is made and
// configured anew, with the address that the host gives it then.
func (r Record) Peers() map[string]netip.Addr {
	peers := map[string]netip.Addr{}

	for name, m := range r.Seen {
		if peer, err := netip.ParseAddr(m.PeerAddress); err == nil && m.Stage != record.StageGone {
			peers[name] = peer
		}
	}

	return peers
}

// Links are those that have the addresses of machines, where they were seen.
func (r Record) Links() map[string]string {
	links := map[string]string{}

	for name, m := range r.Seen {
		if m.Link != "" && m.Stage != record.StageGone {
			links[name] = m.Link
		}
	}

	return links
}

// Carried are the keys that machines carried when they were last seen.
func (r Record) Carried() []rotation.Keys {
	var carried []rotation.Keys
	for _, machine := range r.Machines {
		carried = append(carried, machine.Keys)
	}

	return carried
}

// LeftToOthersNames are the names of machines that belong to another resource by now.
func (r Record) LeftToOthersNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Machines)),
		func(name string) bool { return !r.Machines[name].Claimed })
}

// leavingToOthers are the names of machines that leave and belong to another resource by now.
func (r PriorState) leavingToOthers() []string {
	return slices.DeleteFunc(r.LeftToOthersNames(), func(name string) bool { return !r.leaves(name) })
}

// WithLeftToOthers is the record in which these machines, and no others, belong to another resource.
func (r Record) WithLeftToOthers(names []string) Record {
	r.Machines = maps.Clone(r.Machines)

	for name, machine := range r.Machines {
		machine.Claimed = slices.Contains(names, name)
		r.Machines[name] = machine
	}

	return r
}

// LeftToOthers reports whether every machine belongs to another resource by now.
func (r Record) LeftToOthers() bool {
	return len(r.Machines) > 0 && len(r.LeftToOthersNames()) == len(r.Machines)
}

// PriorState is what state knows of machines, and what becomes of them in the place of whose record another set is
// wanted. It is complete when it is made (NewPriorState), and methods that add to it return another one.
type PriorState struct {
	Record

	// Removed are the machines that leave; moved has the former addresses, renamed the former
	// names of machines; replaced has the names of those that left to other hardware. relocated
	// tells that a machine has to be looked for.
	Removed   []cluster.Machine
	Moved     map[string]string
	Renamed   map[string]string
	Replaced  map[string]string
	relocated bool
	// on is what the machines run on.
	on Platform
	// Left are machines that an earlier update left behind, for a destroy.
	Left []cluster.Machine
	// changes are what becomes another in the configurations of members, by machine.
	changes map[string][]machineconfig.Change
	// Replace is why pods are replaced that were made with something else than is wanted now, by machine.
	Replace map[string]string
	// changedManifests is what bootstrap manifests are made of and that changes; see cluster.KubernetesSpec.
	changedManifests []string
}

// NewPriorState works out what becomes of the machines of a record when a set p takes the place of prior: who leaves,
// who moves, and who goes by another name. It is the same at plan time and in the apply. The findings are about changes
// that cannot be told apart.
func NewPriorState(before Record, p, prior Set) (PriorState, finding.List) {
	before.Machines, before.Seen = maps.Clone(before.Machines), before.Seen.Clone()
	r := PriorState{Record: before, changedManifests: p.changedManifests(prior)}
	diags := r.compare(p, prior)

	return r, diags
}

// PriorStateOfDestroy is what state knows of machines that all go, those among them that an update left behind and that
// can still answer: they have to be reset, too.
func PriorStateOfDestroy(record Record, p Set) PriorState {
	r, _ := NewPriorState(record, p, p) // nothing changes, so that there is nothing to say about it

	r.Left = slices.DeleteFunc(slices.Clone(r.Removed), p.addressTaken)
	r.Removed = nil

	return r
}

// remembered is what state says of a machine that is to have this UUID.
func (r PriorState) remembered(name, uuid string) cluster.Remembered {
	known, member := r.Machines[name], r.Seen[name].MemberID
	out := cluster.Remembered{
		PreviousAddress: r.Moved[name], Joined: member != "", InService: known.Access == step.Member,
		OwnedByOther: known.Claimed, Staged: known.StagedDigest != "", Replace: r.Replace[name],
	}

	// The name was recorded for the recorded hardware; it says nothing about another.
	if strings.EqualFold(uuid, known.UUID) {
		out.NodeName = known.NodeName
	}

	if known.Access != step.Member {
		out.MemberID = member // etcd still has it of a machine that lost its configuration, as far as state knows
	}

	return out
}

// WithRemoved is the state with more machines that leave.
func (r PriorState) WithRemoved(more ...cluster.Machine) PriorState {
	r.Removed = slices.Concat(r.Removed, more)

	return r
}

// WithLeft is the state with more machines that were left behind.
func (r PriorState) WithLeft(more ...cluster.Machine) PriorState {
	r.Left = slices.Concat(r.Left, more)

	return r
}

// Added are the machines of a set that the one of state has not, be it under another name or at another address.
func (r PriorState) Added(p, prior Set) []cluster.Machine {
	return slices.DeleteFunc(p.Spec(r, Rendered{}).Machines, func(m cluster.Machine) bool {
		_, listed := prior.Machines[m.Name]
		_, renamed := r.Renamed[m.Name]

		return listed || renamed
	})
}

// leaving are the machines that are to go.
func (r PriorState) leaving() []cluster.Machine { return slices.Concat(r.Removed, r.Left) }

// Bootstrapped reports whether the recorded phase implies that the cluster had an
// etcd: it is only Provisioning or Bootstrapping before that.
func Bootstrapped(phase cluster.Phase) bool {
	return slices.Contains([]cluster.Phase{cluster.Joining, cluster.Ready, cluster.Degraded}, phase)
}
