// Package ledger is what the resources of one process share: what they hold, what they plan, and what they observed.
// The CLIs plan and apply in separate processes, and call the resources in parallel, in an order that follows only
// from references. A ledger knows what is in no state and in no cluster yet. What it does not know may still be
// true.
package ledger

import (
	"maps"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Ledger has what one walk of a CLI, a plan or an apply, learns, and what the process remembers while it lives. It
// is safe for concurrent use.
type Ledger struct {
	mu *sync.Mutex

	// What the process remembers. The key of a cluster is its identity, see [machineset.Set.Identity], or the mark of
	// its secrets.

	// founders are the machines on which runs bootstrapped the etcd of a cluster, by its identity.
	founders facts[string, cluster.Machine]
	// runs are the active runs, with what they do.
	runs facts[*peer, cluster.Standing]
	// rejoining are the control planes that objects replace, by the identity of the cluster and the object.
	rejoining facts[part, cluster.Rejoining]
	// beside are the control planes of other objects, by the identity of the cluster and the addresses of the machines
	// that left it.
	beside facts[part, []cluster.Machine]
	// cached are the observations of control planes, by the mark of a cluster.
	cached facts[string, *answers]
	// removals are what a replacement would do to the machines of an object, by its owner ID.
	removals facts[string, Removal]
	// secretsPlanned reports whether the plan generates new secrets.
	secretsPlanned facts[struct{}, bool]
	// rotations are the rotations of a plan, by the mark of the secrets.
	rotations facts[string, plannedRotation]
	// kept are descriptions of machines that keep running, by the mark of their secrets and their resource.
	kept facts[part, string]
	// pools are the pools of pods that resources have created or changed, by a unique key.
	pools facts[string, bool]
	// releases are the Helm releases that resources have made, with their claims, and refreshed those that were read.
	releases  facts[string, string]
	refreshed facts[string, bool]

	walk
}

// part is a part of a cluster, such as an object.
type part struct{ cluster, name string }

// walk is what one walk of a CLI learns. The CLIs repeat a plan within the apply without the private state of the
// first one (Terraform 1.15, OpenTofu 1.12: node_resource_abstract_instance.go, plan), so only the walk
// distinguishes new secrets from older ones.
type walk struct {
	// claimed are the owner IDs of the resources that have claimed machines. The marks on nodes say the same across
	// processes. This also works before there is a mark, and while Kubernetes is down.
	claimed facts[machineKey, string]
	// left are the machines that left their cluster because they end, such as VMs that are destroyed.
	left facts[machineKey, bool]
	// made and wiped are the objects that a plan creates from machines, and those whose machines it resets.
	made, wiped facts[machineKey, plannedObject]
	// listed are the objects whose plans list machines, and answered those of the machines at the addresses of their
	// last answers.
	listed, answered facts[machineKey, holder]
	// ends are what plans do to the control planes of a cluster, by the mark of its secrets.
	ends facts[string, plannedEnd]
	// unused are the marks of secrets without a cluster: the walk generated them, or reset all control planes of their
	// cluster. recorded are those of clusters in state, and exposed those of clusters whose Kubernetes API is exposed
	// once the plan is applied.
	unused, recorded, exposed facts[string, bool]
	// seen is what refreshes observed of the machines of objects, by the ID of their owner.
	seen facts[string, machineset.Refreshed]
}

// plannedObject is an object of a plan. Its name is that of the cluster or machine, which an object under another
// address of the configuration has, too. Its owner ID is unique, and empty for an object that is still to be
// created.
type plannedObject struct{ name, owner string }

// machineKey identifies a machine by the authorities of its cluster, and by its address or its UUID. When the
// secrets of a cluster are not generated yet, its machines are identified by address alone.
type machineKey struct{ cluster, machine string }

// holder is an object that lists a machine, and the name of the machine there.
type holder struct {
	plannedObject

	machine string
}

// plannedEnd is what the plans of this process do to the control planes of one cluster. Each object is planned
// separately, in any order: only the last plan can see that the cluster ends.
type plannedEnd struct {
	// going are the sets of objects whose control planes are reset.
	going []machineset.Set
	// protected names one protected object among them, joins an object whose control plane joins, and replaced is true
	// when one of them is created again; each is empty for none.
	protected, joins string
	replaced         bool
	// inTurn are the single control planes that are created again, and ordered is true when their creates may wait for
	// the removal of all of them.
	inTurn  []string
	ordered bool
}

// Removal is what a replacement of an object in state does to its machines. The plan of the replacement sees no
// state, and uses what this process read of the object, or planned of an update:
//
//   - Under -replace and replace_triggered_by the CLIs ask for the plan of the update first and then for that of a
//     create, with the private state of the first. Of the latter they show errors, and no warnings. (A planned value
//     cannot carry it either: in the apply the CLIs plan the create once more, with neither state nor private state,
//     and expect the same.)
//   - An object that is tainted is read, and then planned as a create, with neither state nor private state.
//
// (Terraform 1.11.4 and OpenTofu 1.12.6, NodeAbstractResourceInstance.plan.)
type Removal struct {
	Kind, ID string
	// Set is the machines in state, with their protection.
	Set func() machineset.Set
	// Tell describes what would happen to them; empty for nothing. Refuse refuses what they are protected from.
	Tell   func() string
	Refuse func() finding.List
	// Plan notes that the plan wipes them to create next. It warns of what they lose, and refuses the end of a
	// protected cluster.
	Plan func(next machineset.Set, tainted bool) finding.List
	// read is true until the object is planned: only a tainted object is read and never planned itself.
	read bool
}

type peers struct {
	ledger  *Ledger
	cluster string
}

// peer is one active run.
type peer struct{ peers }

// plannedRotation is the secrets before a rotation, and its keys.
type plannedRotation struct {
	of    *pki.Bundle
	kinds []rotation.Kind
}

// New returns an empty ledger.
func New() *Ledger {
	mu := &sync.Mutex{}

	return &Ledger{
		mu:       mu,
		founders: none[string, cluster.Machine](mu), runs: none[*peer, cluster.Standing](mu),
		rejoining: none[part, cluster.Rejoining](mu), beside: none[part, []cluster.Machine](mu),
		cached: none[string, *answers](mu), removals: none[string, Removal](mu),
		secretsPlanned: none[struct{}, bool](mu), rotations: none[string, plannedRotation](mu), kept: none[part, string](mu),
		pools: none[string, bool](mu), releases: none[string, string](mu), refreshed: none[string, bool](mu),
		walk: newWalk(mu),
	}
}

func newWalk(mu *sync.Mutex) walk {
	return walk{
		claimed: none[machineKey, string](mu), left: none[machineKey, bool](mu),
		made: none[machineKey, plannedObject](mu), wiped: none[machineKey, plannedObject](mu),
		listed: none[machineKey, holder](mu), answered: none[machineKey, holder](mu),
		ends: none[string, plannedEnd](mu), unused: none[string, bool](mu), recorded: none[string, bool](mu),
		exposed: none[string, bool](mu), seen: none[string, machineset.Refreshed](mu),
	}
}

// NewWalk is the ledger of another walk in the same process. It starts with what was noted of secrets before.
func (l *Ledger) NewWalk() *Ledger {
	next := *l
	next.walk = newWalk(l.mu)
	maps.Copy(next.unused.by, l.unused.all())
	maps.Copy(next.recorded.by, l.recorded.all())

	return &next
}
