package machineset

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// A machine is identified by its name in the configuration and by its hardware. A machine whose name is gone leaves,
// unless another name now has its address or hardware. A machine whose address changed is searched for. A machine
// that is declared to be other hardware leaves, and another one joins under its name.

// ReplacedSuffix marks the name of a machine that other hardware replaced. No name from a user has spaces.
const ReplacedSuffix = " (replaced)"

// compare fills in what NewPriorState computes.
func (r *PriorState) compare(p, prior Set) finding.List {
	r.Moved, r.Renamed, r.Replaced = map[string]string{}, map[string]string{}, map[string]string{}

	r.on = p.Platform()

	if p.Unknown.Has(UnknownAddresses) {
		return nil
	}

	var diags finding.List

	for _, name := range slices.Sorted(maps.Keys(p.Machines)) {
		if before, existed := prior.Machines[name]; existed {
			r.compareMachine(name, p.Machines[name], before)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(prior.Machines)) {
		if _, stays := p.Machines[name]; !stays {
			diags.Append(r.removed(name, p, prior)...)
		}
	}

	// Machines that a failed update left behind are only in the record.
	for _, name := range slices.Sorted(maps.Keys(r.Machines)) {
		_, wanted := p.Machines[name]
		_, listed := prior.Machines[name]
		_, adopted := r.Renamed[name]

		if !wanted && !listed && !adopted && !r.leaves(name) {
			left := cluster.MachineAt(name, prior.RoleOf(name), r.Seen[name].Address)
			if g := prior.groupOf(name); g != nil {
				left.Pool, left.Through = g.Pool, prior.reachedThrough(g)
			}

			r.Remove(name, left)
		}
	}

	for _, m := range r.Removed {
		if p.addressTaken(m) {
			// Another machine is at its address, so it cannot take part in its removal.
			state := r.Machines[m.Name]
			state.Access, state.Cause = step.Foreign, "another machine has its address"
			r.Machines[m.Name] = state
		}
	}

	for i, m := range r.Removed {
		if former, ok := p.formerly(m); ok && m.NodeName == "" {
			r.Removed[i].NodeName = p.Host.NameOf(p.Settings.Name, former)
		}
	}

	slices.SortFunc(r.Removed, func(a, b cluster.Machine) int { return strings.Compare(a.Name, b.Name) })

	return diags
}

// Changed reports whether any machine leaves, moves or is renamed, so that the machines must be observed even if
// nothing is sent to them.
func (r PriorState) Changed() bool {
	return r.relocated || len(r.Removed)+len(r.Moved)+len(r.Renamed) > 0
}

// compareMachine compares a machine with the former one of its name.
func (r *PriorState) compareMachine(name string, now, before Machine) {
	known, recorded := r.Machines[name]

	r.relocated = r.relocated || now.Address != before.Address || !strings.EqualFold(now.UUID, before.UUID)

	switch {
	case recorded && exchanged(now, before, known):
		as := r.freeName(name + ReplacedSuffix)
		r.Replaced[as] = name
		r.carry(name, as)
		left := before.leaving(as)
		left.Locked = now.Locked
		r.Remove(as, left)
	case recorded:
		r.seek(name, now.Address, r.Seen[name].Address, before.Address)
	}
}

// seek records where else a machine may be: the first of the places that differs from its address.
func (r *PriorState) seek(name, now string, places ...string) {
	for _, place := range places {
		if place != "" && !SameAddress(now, place) {
			r.Moved[name] = place

			return
		}
	}
}

// exchanged reports whether the user declares a machine to be other hardware than the recorded one.
func exchanged(now, before Machine, known step.MachineState) bool {
	if now.UUID == "" || known.UUID == "" || strings.EqualFold(now.UUID, before.UUID) {
		return false
	}

	return !(cluster.Machine{Wanted: cluster.Wanted{UUID: now.UUID}, Meta: now.Meta.Keyed()}).MayReport(known.UUID)
}

func (r *PriorState) freeName(name string) string {
	for free := name; ; free += "'" {
		if _, taken := r.Machines[free]; !taken {
			return free
		}
	}
}

// removed decides what happens to a machine whose name is gone.
func (r *PriorState) removed(name string, p, prior Set) finding.List {
	before := prior.Machines[name]

	known, recorded := r.Machines[name]
	if !recorded && !r.on.made {
		return nil // it was never reached, and does not belong to this resource
	}

	successor := p.successor(before, known)
	if successor == "" {
		r.Remove(name, before.leaving(name))

		return nil
	}

	now := p.Machines[successor]
	if _, listed := prior.Machines[successor]; listed || now.Group.Role != before.Group.Role {
		return finding.List{machineRoleChange.At(p.machinePath(successor), finding.Args{"machine": successor,
			"former": name, "role": before.Group.Role, "address": before.Address})}
	}

	r.rename(name, successor, before.Address, now.Address)

	return nil
}

// successor is the machine of a set with the address or the hardware of one that is no longer listed; empty when that
// one is really gone.
func (p Set) successor(before Machine, known step.MachineState) string {
	for _, name := range slices.Sorted(maps.Keys(p.Machines)) {
		now := p.Machines[name]
		bothKnown := now.UUID != "" && known.UUID != ""

		switch {
		case bothKnown && strings.EqualFold(now.UUID, known.UUID):
			return name
		case !bothKnown && SameAddress(now.Address, before.Address):
			return name
		}
	}

	return ""
}

// rename moves the record of a machine to its new name.
func (r *PriorState) rename(from, to, before, now string) {
	r.carry(from, to)
	r.Renamed[to] = from
	r.seek(to, now, r.Seen[to].Address, before)
}

// leaving is a machine that leaves under that name, without its settings for joining.
func (m Machine) leaving(name string) cluster.Machine {
	m.Fingerprint, m.Rejoin = "", false

	return cluster.Machine{Name: name, Role: m.Group.Role, Pool: m.Group.Pool, Wanted: m.Wanted,
		UserVolumes: m.userVolumes()}
}

// Remove removes a machine. A machine that waits in maintenance mode and left nothing behind has nothing of the
// cluster any more, and its hardware may belong to others. The pod of a container is removed in any case.
func (r *PriorState) Remove(name string, m cluster.Machine) {
	known := r.Machines[name]
	m.Container, m.OwnedByOther = r.on.Container, known.Claimed

	if !r.on.Deleted && known.Access == step.Maintenance && known.NodeName == "" && r.Seen[name].MemberID == "" {
		delete(r.Machines, name)

		r.relocated = true

		return
	}

	m.NodeName, m.MemberID = known.NodeName, r.Seen[name].MemberID
	m.UUID = cmp.Or(known.UUID, m.UUID)

	r.Removed = append(r.Removed, m)
}

func (r PriorState) leaves(name string) bool {
	return slices.ContainsFunc(r.Removed, func(m cluster.Machine) bool { return m.Name == name })
}

// SameAddress compares two addresses by value.
func SameAddress(a, b string) bool {
	hostA, errA := CanonicalHost(a)
	hostB, errB := CanonicalHost(b)

	return errA == nil && errB == nil && hostA == hostB
}

// refuseLostQuorum refuses removals that etcd would not survive, based on the recorded state: those of all its
// control planes, and those that need the votes of lost hardware. The number of removals alone is not a reason,
// because machines leave one by one.
func refuseLostQuorum(p, prior Set, recorded PriorState) finding.List {
	members := cluster.MembersOnRecord(p.Spec(recorded, Rendered{}), recorded.Machines)
	if len(members.Leaving) == 0 || !Bootstrapped(recorded.Phase) || !prior.TakesCluster() {
		return nil
	}

	at := prior.controlPlanePath()

	switch {
	case members.LosesAll():
		return finding.List{noControlPlaneLeft.At(at, finding.Args{"cluster": p.Settings.Name, "machines": members.Leaving,
			"first": members.Leaving[0]})}
	case members.LosesQuorum():
		return finding.List{etcdMajorityLost.At(at, finding.Args{"cluster": p.Settings.Name, "machines": members.Lost,
			"count": members.Count})}
	default:
		return nil
	}
}

// addressTaken reports whether a wanted machine has the address of one that leaves, which then cannot answer any
// more.
func (p Set) addressTaken(m cluster.Machine) bool {
	for _, machine := range p.Machines {
		if SameAddress(machine.Address, m.Address) {
			return true
		}
	}

	return false
}

// controlPlanePath is where the control planes are listed.
func (p Set) controlPlanePath() finding.Path {
	for _, g := range p.Groups {
		if g.Role == step.ControlPlane {
			return g.At.AtName(p.Platform().list)
		}
	}

	return finding.Root("machines")
}
