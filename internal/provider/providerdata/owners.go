package providerdata

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Owners are the machines that resources of this process have taken, and what the plans of this process do to machines.
// The marks on nodes say the same across processes; this knows it before there is a mark, and while Kubernetes is down.
// It is safe for concurrent use.
type Owners struct {
	mu sync.Mutex
	// claimed are the ids of the owners of machines.
	claimed map[machineKey]string
	// made and wiped are the objects that a plan makes of machines, and those whose machines it resets.
	made, wiped map[machineKey]plannedObject
	// held are the objects that list machines by their plans.
	held heldMachines
	// ends are what plans do to the control planes of clusters, by the mark of the secrets.
	ends map[string]*plannedEnd
}

// plannedObject is an object of a plan. Its name is that of the cluster or machine, which an object under another
// address of the configuration has, too; its owner id is its own, empty for one that is still to be created.
type plannedObject struct{ name, owner string }

// NewOwners knows of no machine.
func NewOwners() *Owners {
	return &Owners{
		claimed: map[machineKey]string{}, made: map[machineKey]plannedObject{}, wiped: map[machineKey]plannedObject{},
		held: heldMachines{map[machineKey]holder{}, map[machineKey]holder{}},
		ends: map[string]*plannedEnd{},
	}
}

// machineKey tells a machine by the authorities of its cluster, and by its address or its UUID. Where the secrets of a
// cluster are still to be made, its machines are told by their addresses alone.
type machineKey struct{ cluster, machine string }

// clusterKey tells clusters apart by their secrets; empty while those are not known.
func clusterKey(secrets string) string {
	bundle, err := pki.Parse([]byte(secrets))
	if err != nil {
		return ""
	}

	return bundle.Mark()
}

func keysOf(of string, m cluster.Machine) []machineKey {
	var keys []machineKey

	if host, err := machineset.CanonicalHost(m.Address); err == nil && host != "" {
		keys = append(keys, machineKey{of, "address " + host})
	}

	if m.UUID != "" && !m.Container {
		keys = append(keys, machineKey{of, "uuid " + strings.ToLower(m.UUID)})
	}

	return keys
}

// Claim notes that the resource with an id has taken machines of a cluster.
func (o *Owners) Claim(p machineset.Set, machines []cluster.Machine) {
	o.mu.Lock()
	defer o.mu.Unlock()

	of := clusterKey(p.Secrets)

	for _, m := range machines {
		for _, key := range keysOf(of, m) {
			o.claimed[key] = p.Owner
		}
	}
}

// Release forgets what a resource has taken that is gone.
func (o *Owners) Release(owner string) {
	o.mu.Lock()
	defer o.mu.Unlock()

	for key, of := range o.claimed {
		if of == owner {
			delete(o.claimed, key)
		}
	}
}

// ClaimedByOthers tells which machines another resource than that of p has taken.
func (o *Owners) ClaimedByOthers(p machineset.Set) func(cluster.Machine) bool {
	of := clusterKey(p.Secrets)

	return func(m cluster.Machine) bool {
		o.mu.Lock()
		defer o.mu.Unlock()

		for _, key := range keysOf(of, m) {
			if owner, claimed := o.claimed[key]; claimed && owner != p.Owner {
				return true
			}
		}

		return false
	}
}

// PlanMade notes the machines that a plan makes an object of, and refuses those that the same plan resets for another
// object: nothing orders the two.
func (o *Owners) PlanMade(p machineset.Set, object string, machines []cluster.Machine) finding.List {
	return o.plan(p, machines, object, false, func(name, other string) string {
		return object + " would be made of " + name + ", which " + other + " resets"
	})
}

// PlanWiped notes the machines that a plan resets for an object, and refuses those that the same plan makes another one
// of. Machines that were recorded as another's are not reset.
func (o *Owners) PlanWiped(p machineset.Set, object string, machines []cluster.Machine) finding.List {
	claimed := o.ClaimedByOthers(p)
	machines = slices.DeleteFunc(slices.Clone(machines),
		func(m cluster.Machine) bool { return m.OwnedByOther || claimed(m) })

	return o.plan(p, machines, object, true, func(name, other string) string {
		return object + " would reset " + name + ", which " + other + " is made of"
	})
}

func (o *Owners) plan(
	p machineset.Set, machines []cluster.Machine, object string, resets bool,
	clash func(name, other string) string,
) finding.List {
	o.mu.Lock()
	defer o.mu.Unlock()

	planned, own, others := plannedObject{object, p.Owner}, o.made, o.wiped
	if resets {
		own, others = others, own
	}

	for _, m := range machines {
		for _, key := range plannedKeys(clusterKey(p.Secrets), m, resets) {
			own[key] = planned

			if other, both := others[key]; both && other != planned {
				return finding.List{reusedMachine(clash(m.Name+" at "+m.Address, other.name))}
			}
		}
	}

	return nil
}

// plannedKeys are those by which a plan tells a machine. Secrets that are still to be made are those of no machine that
// runs, but a machine of metal may run with others: a plan that resets one tells it by its address alone, too.
func plannedKeys(of string, m cluster.Machine, resets bool) []machineKey {
	var keys []machineKey
	if of != "" {
		keys = keysOf(of, m)
	}

	if !m.Container && (of == "" || resets) {
		keys = append(keys, keysOf("", cluster.Machine{Address: m.Address})...)
	}

	return keys
}

// AllPlannedWiped reports whether the plans of this process reset every one of the machines.
func (o *Owners) AllPlannedWiped(p machineset.Set, machines []cluster.Machine) bool {
	of := clusterKey(p.Secrets)

	o.mu.Lock()
	defer o.mu.Unlock()

	for _, m := range machines {
		wiped := false
		for _, key := range keysOf(of, m) {
			wiped = wiped || o.wiped[key].name != ""
		}

		if !wiped {
			return false
		}
	}

	return true
}

func reusedMachine(clash string) finding.Finding {
	return finding.Refused(finding.Path{}, "Machine of one resource planned for another",
		"by this plan "+clash,
		"The plan does not order the two, so that a machine that works could be reset",
		"Nothing was changed. Where the resource was renamed, or moved to another module or key, say so: moved { from = "+
			"OLD_ADDRESS, to = NEW_ADDRESS }. Where another type of resource takes the machine over, forget the old one: "+
			"removed { from = OLD_ADDRESS, lifecycle { destroy = false } }. To reset the machine first, apply its removal alone")
}

// ownersTimeout is how long a removal that is planned waits for the cluster to say whose its machines are.
const ownersTimeout = 5 * time.Second

// WithOwners is the record of a set with the owners that the nodes of its machines name now. Terraform 1.11 plans the
// removal of an object before it reads it (internal/terraform/node_resource_plan_orphan.go), so that state cannot tell.
// While the cluster does not answer, what was recorded counts.
func (m *ProviderData) WithOwners(ctx context.Context, p machineset.Set, record machineset.Record) machineset.Record {
	if p.Owner == "" || !record.HasMembers() {
		return record
	}

	ctx, cancel := context.WithTimeout(tf.MaskSecrets(ctx, p.Secrets), ownersTimeout)
	defer cancel()

	seen, err := m.nodesOf(ctx, p)
	if err != nil || !seen.Reachable {
		tf.LogInfo(ctx, "the owners of machines count as recorded", map[string]any{"error": err, "cause": seen.Cause})

		return record
	}

	record.Machines = maps.Clone(record.Machines)

	for name, machine := range record.Machines {
		if owner := seen.Owners[machine.NodeName]; owner != "" {
			machine.Claimed = owner != p.Owner
			record.Machines[name] = machine
		}
	}

	return record
}

// nodesOf lists the nodes of a cluster.
func (m *ProviderData) nodesOf(ctx context.Context, p machineset.Set) (kubestate.State, error) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return kubestate.State{}, err
	}

	c, err := m.ClientsOf(ctx, pki.AskingOwners, p, machineset.PriorState{}, bundle, api.Options{})
	if err != nil {
		return kubestate.State{}, err
	}

	defer c.Close()

	return c.API.Observe(ctx), nil
}
