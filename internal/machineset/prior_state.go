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

// Record is the recorded state of the machines of a set.
type Record struct {
	Phase cluster.Phase
	// Machines are machines as the planner begins with them.
	Machines map[string]step.MachineState
	// Seen is the recorded state of machines, from which Machines is made.
	Seen record.Machines
	// Manifests is the Kubernetes version of the cluster's bootstrap manifests.
	Manifests string
	// RestoredFrom is the last restored snapshot, and RestoredAt the time of the restore.
	RestoredFrom string
	RestoredAt   time.Time
	// Unmanaged are the nodes of machines without a resource, ordered by name.
	Unmanaged []kubestate.Node
}

// HasMembers reports whether a machine is known to run as a member.
func (r Record) HasMembers() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(r.Machines)),
		func(m step.MachineState) bool { return m.Access == step.Member })
}

// carry moves the record of a machine to another name.
func (r Record) carry(from, to string) {
	r.Machines[to] = r.Machines[from]
	delete(r.Machines, from)
	r.Seen.Rename(from, to)
}

// Peers are the addresses at which other etcd members reach machines in containers. A machine that is gone is created
// and configured again, with its new address from the host.
func (r Record) Peers() map[string]netip.Addr {
	peers := map[string]netip.Addr{}

	for name, m := range r.Seen {
		if peer, err := netip.ParseAddr(m.PeerAddress); err == nil && m.Stage != record.StageGone {
			peers[name] = peer
		}
	}

	return peers
}

// Links are the links with the addresses of machines, where they were observed.
func (r Record) Links() map[string]string {
	links := map[string]string{}

	for name, m := range r.Seen {
		if m.Link != "" && m.Stage != record.StageGone {
			links[name] = m.Link
		}
	}

	return links
}

// Carried are the last observed keys of machines.
func (r Record) Carried() []rotation.Keys {
	var carried []rotation.Keys
	for _, machine := range r.Machines {
		carried = append(carried, machine.Keys)
	}

	return carried
}

// LeftToOthersNames are the names of machines that now belong to another resource.
func (r Record) LeftToOthersNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Machines)),
		func(name string) bool { return !r.Machines[name].Claimed })
}

// leavingToOthers are the names of leaving machines that now belong to another resource.
func (r PriorState) leavingToOthers() []string {
	return slices.DeleteFunc(r.LeftToOthersNames(), func(name string) bool { return !r.leaves(name) })
}

// WithLeftToOthers is the record in which exactly these machines belong to another resource.
func (r Record) WithLeftToOthers(names []string) Record {
	r.Machines = maps.Clone(r.Machines)

	for name, machine := range r.Machines {
		machine.Claimed = slices.Contains(names, name)
		r.Machines[name] = machine
	}

	return r
}

// LeftToOthers reports whether every machine now belongs to another resource.
func (r Record) LeftToOthers() bool {
	return len(r.Machines) > 0 && len(r.LeftToOthersNames()) == len(r.Machines)
}

// PriorState is the recorded state of machines, and what happens to them when another set is wanted instead. It is
// complete when its constructor (NewPriorState) returns, and methods that add to it return another one.
type PriorState struct {
	Record

	// Removed are the machines that leave. moved has the former addresses, renamed the former names of machines, and
	// replaced the names of machines that leave because other hardware replaces them. relocated is true when a machine
	// must be searched for.
	Removed   []cluster.Machine
	Moved     map[string]string
	Renamed   map[string]string
	Replaced  map[string]string
	relocated bool
	// on is the platform of the machines.
	on Platform
	// Left are machines that an earlier update left behind, for a destroy.
	Left []cluster.Machine
	// changes are the changes in the configurations of members, by machine.
	changes map[string][]machineconfig.Change
	// Replace is why pods with another specification than the wanted one are replaced, by machine.
	Replace map[string]string
	// changedManifests are the changed sources of bootstrap manifests; see cluster.KubernetesSpec.
	changedManifests []string
}

// NewPriorState decides what happens to the machines of a record when a set p replaces prior: which ones leave, which
// move, and which are renamed. Plan and apply get the same result. The findings are about ambiguous changes.
func NewPriorState(before Record, p, prior Set) (PriorState, finding.List) {
	before.Machines, before.Seen = maps.Clone(before.Machines), before.Seen.Clone()
	r := PriorState{Record: before, changedManifests: p.changedManifests(prior)}
	diags := r.compare(p, prior)

	return r, diags
}

// PriorStateOfDestroy is the recorded state of machines that all leave. It includes machines that an update left
// behind and that can still answer, because they must be reset too.
func PriorStateOfDestroy(record Record, p Set) PriorState {
	r, _ := NewPriorState(record, p, p) // nothing changes, so there are no findings

	r.Left = slices.DeleteFunc(slices.Clone(r.Removed), p.addressTaken)
	r.Removed = nil

	return r
}

// remembered is the recorded state of a machine that must have this UUID.
func (r PriorState) remembered(name, uuid string) cluster.Remembered {
	known, member := r.Machines[name], r.Seen[name].MemberID
	out := cluster.Remembered{
		PreviousAddress: r.Moved[name], Joined: member != "", InService: known.Access == step.Member,
		OwnedByOther: known.Claimed, Staged: known.StagedDigest != "", Replace: r.Replace[name],
	}

	// The name was recorded for the recorded hardware, and does not apply to another.
	if strings.EqualFold(uuid, known.UUID) {
		out.NodeName = known.NodeName
	}

	if known.Access != step.Member {
		out.MemberID = member // etcd still lists the member of a machine that lost its configuration
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

// Added are the machines of a set that the prior set does not have, not even under another name or address.
func (r PriorState) Added(p, prior Set) []cluster.Machine {
	return slices.DeleteFunc(p.Spec(r, Rendered{}).Machines, func(m cluster.Machine) bool {
		_, listed := prior.Machines[m.Name]
		_, renamed := r.Renamed[m.Name]

		return listed || renamed
	})
}

// leaving are the machines that leave.
func (r PriorState) leaving() []cluster.Machine { return slices.Concat(r.Removed, r.Left) }

// Bootstrapped reports whether the recorded phase implies that the cluster had an etcd: before that it is only
// Provisioning or Bootstrapping.
func Bootstrapped(phase cluster.Phase) bool {
	return slices.Contains([]cluster.Phase{cluster.Joining, cluster.Ready, cluster.Degraded}, phase)
}
