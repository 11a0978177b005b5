// Package ledger is what the resources of one process tell each other: what they hold, what they plan to do, and what
// they saw. The CLIs plan and apply in processes of their own, and call the resources side by side, in an order that
// follows from references alone. A ledger knows what is in no state and in no cluster yet; what it does not know may be
// true all the same.
package ledger

import (
	"maps"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// Ledger has what one walk of a CLI, a plan or an apply, learns, and what the process remembers as long as it lives. It
// is safe for concurrent use.
type Ledger struct {
	mu *sync.Mutex

	// What the process remembers. Clusters are told by their identity, see [machineset.Set.Identity], or by the mark of
	// their secrets.

	// founders are the machines on which runs began the etcd of a cluster, by its identity.
	founders facts[string, cluster.Machine]
	// runs are those that are at work, with what they do.
	runs facts[*peer, cluster.Standing]
	// rejoining are the control planes that objects replace, by the identity of the cluster and the object.
	rejoining facts[part, cluster.Rejoining]
	// beside are the control planes of other objects, by the identity of the cluster and the addresses of the machines
	// that left it.
	beside facts[part, []cluster.Machine]
	// sightings are what was seen of control planes, by the mark of a cluster.
	sightings facts[string, *sighting]
	// removals are what would become of the machines of an object, by its owner id.
	removals facts[string, Removal]
	// secretsPlanned is whether the plan makes new secrets.
	secretsPlanned facts[struct{}, bool]
	// rotations are what a plan turns over of secrets, by their mark.
	rotations facts[string, plannedRotation]
	// kept are machines that go on running, in words, by the mark of their secrets and their resource.
	kept facts[part, string]
	// pools are the pools of pods that resources have made or changed, by what tells them from all others.
	pools facts[string, bool]
	// releases are the Helm releases that resources have made, with the claims that tell these apart, and refreshed those
	// that were read.
	releases  facts[string, string]
	refreshed facts[string, bool]

	walk
}

// part is a part of a cluster, such as an object.
type part struct{ cluster, name string }

// walk is what one walk of a CLI learns. The CLIs repeat a plan within the apply without the first one's private state
// (Terraform 1.15, OpenTofu 1.12: node_resource_abstract_instance.go, plan), so that nothing else tells new secrets
// from older ones.
type walk struct {
	// claimed are the owner ids of the resources that have taken machines. The marks on nodes say the same across
	// processes; this knows it before there is a mark, and while Kubernetes is down.
	claimed facts[machineKey, string]
	// made and wiped are the objects that a plan makes of machines, and those whose machines it resets.
	made, wiped facts[machineKey, plannedObject]
	// listed are the objects that list machines by their plans, and answered those of the machines at the addresses at
	// which they answered when they were read last.
	listed, answered facts[machineKey, holder]
	// ends are what plans do to the control planes of a cluster, by the mark of its secrets.
	ends facts[string, plannedEnd]
	// unused are the marks of secrets that have no cluster: the walk made them, or reset all control planes of their
	// cluster. recorded are those of clusters that the state has.
	unused, recorded facts[string, bool]
}

// New knows of nothing.
func New() *Ledger {
	mu := &sync.Mutex{}

	return &Ledger{
		mu:       mu,
		founders: none[string, cluster.Machine](mu), runs: none[*peer, cluster.Standing](mu),
		rejoining: none[part, cluster.Rejoining](mu), beside: none[part, []cluster.Machine](mu),
		sightings: none[string, *sighting](mu), removals: none[string, Removal](mu),
		secretsPlanned: none[struct{}, bool](mu), rotations: none[string, plannedRotation](mu), kept: none[part, string](mu),
		pools: none[string, bool](mu), releases: none[string, string](mu), refreshed: none[string, bool](mu),
		walk: newWalk(mu),
	}
}

func newWalk(mu *sync.Mutex) walk {
	return walk{
		claimed: none[machineKey, string](mu),
		made:    none[machineKey, plannedObject](mu), wiped: none[machineKey, plannedObject](mu),
		listed: none[machineKey, holder](mu), answered: none[machineKey, holder](mu),
		ends: none[string, plannedEnd](mu), unused: none[string, bool](mu), recorded: none[string, bool](mu),
	}
}

// NewWalk is the ledger of another walk in the same process. It begins with what was noted of secrets before.
func (l *Ledger) NewWalk() *Ledger {
	next := *l
	next.walk = newWalk(l.mu)
	maps.Copy(next.unused.by, l.unused.all())
	maps.Copy(next.recorded.by, l.recorded.all())

	return &next
}
