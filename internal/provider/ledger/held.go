package ledger

import (
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// same reports whether two plans are of one object. An object that is still to be created has no owner ID, and is
// identified by its name.
func (h holder) same(other holder) bool {
	if h.owner != "" || other.owner != "" {
		return h.owner == other.owner
	}

	return h.name == other.name
}

// forgetListed removes what an earlier plan of an object listed.
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

// PlanHeld notes the machines that a plan lists for an object, with the addresses at which those in its state
// answered. It refuses those that another object of the same cluster has. It compares only machines that this
// process plans.
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

// Created notes that an object exists that this process planned to create: its next plan has an owner ID.
func (l *Ledger) Created(object string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.forgetListed(holder{plannedObject: plannedObject{name: object}})
}

// listsItself reports whether a machine is planned at the address at which it answered: then it was already
// compared.
func listsItself(planned []cluster.Machine, m cluster.Machine) bool {
	return slices.ContainsFunc(planned,
		func(now cluster.Machine) bool { return machineset.SameAddress(now.Address, m.Address) })
}

// takenMachine is the error about a machine of p that belongs to another object: it is what is has, and has is
// listed with its address or hardware.
func takenMachine(p machineset.Set, m cluster.Machine, is, has holder) finding.Finding {
	return machineOfAnother.At(p.AddressPath(m.Name), finding.Args{"machine": has.machine, "object": has.name,
		"other_machine": is.machine, "other_object": is.name, "address": m.Address})
}

// heldIn identifies a cluster: by its secrets, or while they are unknown by name and endpoint; empty while those are
// unknown, too.
func heldIn(p machineset.Set) string {
	if of := clusterKey(p.Secrets); of != "" {
		return of
	}

	if p.Settings.Name == "" || p.Settings.Endpoint == "" {
		return ""
	}

	return p.Settings.Name + " at " + p.Settings.Endpoint
}
