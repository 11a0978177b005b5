package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// holder is an object that lists a machine, and the name of the machine there.
type holder struct {
	plannedObject

	machine string
}

// same is whether two plans are of one object. One that is still to be created has no owner id, and is told by its
// name.
func (h holder) same(other holder) bool {
	if h.owner != "" || other.owner != "" {
		return h.owner == other.owner
	}

	return h.name == other.name
}

// forgetListed takes out what an earlier plan of an object said.
func (l *Ledger) forgetListed(self holder) {
	for _, keys := range []map[machineKey]holder{l.listed.by, l.answered.by} {
		maps.DeleteFunc(keys, func(_ machineKey, other holder) bool { return other.same(self) })
	}
}

// holderOf is the object that has a machine, by one of its keys.
func (l *Ledger) holderOf(keys []machineKey) (holder, bool) {
	for _, key := range keys {
		for _, held := range []map[machineKey]holder{l.listed.by, l.answered.by} {
			if other, taken := held[key]; taken {
				return other, true
			}
		}
	}

	return holder{}, false
}

// PlanHeld notes the machines that an object lists by its plan, with the addresses at which those of its state
// answered, and refuses those that another object of the same cluster has. Machines are compared as far as this process
// plans them.
func (l *Ledger) PlanHeld(p machineset.Set, object string, planned, answered []cluster.Machine) finding.List {
	of := heldIn(p)
	if of == "" || p.Platform().Identified {
		return nil
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	self := holder{plannedObject: plannedObject{object, p.Owner}}
	l.forgetListed(self)

	var found finding.List

	for _, m := range planned {
		if other, taken := l.holderOf(keysOf(of, m)); taken {
			found.Append(takenMachine(p, m, other, holder{self.plannedObject, m.Name}))
		}
	}

	for _, m := range answered {
		for _, key := range keysOf(of, m) {
			if other, taken := l.listed.by[key]; taken && !listsItself(planned, m) {
				found.Append(takenMachine(p, m, holder{self.plannedObject, m.Name}, other))
			}

			l.answered.by[key] = holder{self.plannedObject, m.Name}
		}
	}

	for _, m := range planned {
		for _, key := range keysOf(of, m) {
			l.listed.by[key] = holder{self.plannedObject, m.Name}
		}
	}

	return found
}

// Created notes that an object exists, which this process planned to create: its next plan has an owner id.
func (l *Ledger) Created(object string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.forgetListed(holder{plannedObject: plannedObject{name: object}})
}

// listsItself is whether a machine is planned at the address at which it answered: then it was compared already.
func listsItself(planned []cluster.Machine, m cluster.Machine) bool {
	return slices.ContainsFunc(planned,
		func(now cluster.Machine) bool { return machineset.SameAddress(now.Address, m.Address) })
}

// takenMachine is the error about a machine of p that is one of another object: it is what is has, and has is listed
// with its address or hardware.
func takenMachine(p machineset.Set, m cluster.Machine, is, has holder) finding.Finding {
	return finding.Refused(p.AddressPath(m.Name), "Machine of another resource",
		fmt.Sprintf("%s is %s of %s, and %s of %s is listed with that address or hardware", m.Address, is.machine, is.name,
			has.machine, has.name),
		"Each machine of a cluster is listed once, in one resource", "Remove one of them, or correct its address")
}

// heldIn tells clusters apart: by their secrets, and while those are not known by name and endpoint; empty while those
// are not known either.
func heldIn(p machineset.Set) string {
	if of := clusterKey(p.Secrets); of != "" {
		return of
	}

	if p.Settings.Name == "" || p.Settings.Endpoint == "" {
		return ""
	}

	return p.Settings.Name + " at " + p.Settings.Endpoint
}
