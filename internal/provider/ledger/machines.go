package ledger

import (
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// clusterKey identifies a cluster by its secrets; empty while those are unknown.
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

	if m.UUID != "" && !m.Platform().Identified {
		keys = append(keys, machineKey{of, "uuid " + strings.ToLower(m.UUID)})
	}

	return keys
}

// Claim notes that the resource with an ID has claimed machines of a cluster.
func (l *Ledger) Claim(p machineset.Set, machines []cluster.Machine) {
	of := clusterKey(p.Secrets)

	l.mu.Lock()
	defer l.mu.Unlock()

	for _, m := range machines {
		for _, key := range keysOf(of, m) {
			l.claimed.by[key] = p.Owner
		}
	}
}

// Release removes the claims of a resource that is gone.
func (l *Ledger) Release(owner string) {
	l.claimed.dropWhere(func(_ machineKey, of string) bool { return of == owner })
}

// NoteRefreshed notes what a refresh observed of the machines of an owner.
func (l *Ledger) NoteRefreshed(owner string, observed machineset.Refreshed) {
	l.seen.put(owner, observed)
}

// RefreshedOf is what the refresh of this walk observed of the machines of an owner; empty without one.
func (l *Ledger) RefreshedOf(owner string) machineset.Refreshed {
	observed, _ := l.seen.get(owner)

	return observed
}

// ClaimedByOthers reports which machines another resource than that of p has claimed.
func (l *Ledger) ClaimedByOthers(p machineset.Set) func(cluster.Machine) bool {
	of := clusterKey(p.Secrets)

	return func(m cluster.Machine) bool {
		for _, key := range keysOf(of, m) {
			if owner, claimed := l.claimed.get(key); claimed && owner != p.Owner {
				return true
			}
		}

		return false
	}
}

// NoteLeft notes that a machine left the cluster with these secrets because it ends.
func (l *Ledger) NoteLeft(secrets string, m cluster.Machine) {
	for _, key := range keysOf(clusterKey(secrets), m) {
		l.left.put(key, true)
	}
}

// HasLeft reports which machines left the cluster with these secrets because they end.
func (l *Ledger) HasLeft(secrets string) func(cluster.Machine) bool {
	of := clusterKey(secrets)

	return func(m cluster.Machine) bool {
		return slices.ContainsFunc(keysOf(of, m), func(key machineKey) bool {
			left, _ := l.left.get(key)

			return left
		})
	}
}

// PlanMade notes the machines that a plan creates an object from. It refuses those that the same plan resets for
// another object: the two have no order.
func (l *Ledger) PlanMade(p machineset.Set, object string, machines []cluster.Machine) finding.List {
	return l.plan(p, machines, object, false)
}

// PlanWiped notes the machines that a plan resets for an object. It refuses those that the same plan creates another
// object from. Machines recorded as another resource's are not reset.
func (l *Ledger) PlanWiped(p machineset.Set, object string, machines []cluster.Machine) finding.List {
	claimed := l.ClaimedByOthers(p)
	machines = slices.DeleteFunc(slices.Clone(machines),
		func(m cluster.Machine) bool { return m.OwnedByOther || claimed(m) })

	return l.plan(p, machines, object, true)
}

func (l *Ledger) plan(
	p machineset.Set, machines []cluster.Machine, object string, resets bool,
) finding.List {
	of, planned := clusterKey(p.Secrets), plannedObject{object, p.Owner}

	own, others := l.made.by, l.wiped.by
	if resets {
		own, others = others, own
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	for _, m := range machines {
		for _, key := range plannedKeys(of, m, resets) {
			own[key] = planned

			if other, both := others[key]; both && other != planned {
				return finding.List{reusedMachine(m, planned, other, resets)}
			}
		}
	}

	return nil
}

// plannedKeys are the keys of a machine in a plan. Secrets that are not generated yet are those of no running
// machine, but a metal machine may run with others. A plan that resets a machine therefore also uses its address
// alone.
func plannedKeys(of string, m cluster.Machine, resets bool) []machineKey {
	var keys []machineKey
	if of != "" {
		keys = keysOf(of, m)
	}

	if !m.Platform().Identified && (of == "" || resets) {
		keys = append(keys, keysOf("", cluster.Machine{Wanted: cluster.Wanted{Address: m.Address}})...)
	}

	return keys
}

// AllPlannedWiped reports whether the plans of this process reset every one of the machines.
func (l *Ledger) AllPlannedWiped(p machineset.Set, machines []cluster.Machine) bool {
	of := clusterKey(p.Secrets)

	l.mu.Lock()
	defer l.mu.Unlock()

	for _, m := range machines {
		wiped := false
		for _, key := range keysOf(of, m) {
			wiped = wiped || l.wiped.by[key].name != ""
		}

		if !wiped {
			return false
		}
	}

	return true
}

// reusedMachine is the error about a machine that a plan creates an object from and resets for another.
func reusedMachine(m cluster.Machine, planned, other plannedObject, resets bool) finding.Finding {
	created, removed := planned.name, other.name
	if resets {
		created, removed = removed, created
	}

	return machineReused.With(
		finding.Args{"machine": m.Name, "address": m.Address, "created": created, "removed": removed})
}
