package machines

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// A machine is known by its name in the configuration, and by its hardware. What of the
// two changed decides what becomes of it: a machine whose name is gone leaves, unless
// another name has its address or hardware now; one whose address changed is looked for;
// one that is said to be other hardware leaves, and another joins under its name.

// ReplacedSuffix marks the name of a machine that other hardware took the place of. No
// name written by a user has spaces in it.
const ReplacedSuffix = " (replaced)"

// compare works out what becomes of the machines that state knows when a plan p takes
// the place of prior, and notes it in the record: who leaves, who moves, and who goes by
// another name. It is the same at plan time and in the apply. The diagnostics are about
// changes that cannot be told apart.
func (r *PriorState) compare(p, prior MachineSet) finding.List {
	r.moved, r.renamed, r.replaced = map[string]string{}, map[string]string{}, map[string]string{}

	r.containers = p.Host != nil

	if p.unnamed {
		return nil
	}

	var diags finding.List

	for _, name := range sortedNames(p.Machines) {
		if before, existed := prior.Machines[name]; existed {
			r.compareMachine(name, p.Machines[name], before)
		}
	}

	for _, name := range sortedNames(prior.Machines) {
		if _, stays := p.Machines[name]; !stays {
			diags.Append(r.dismiss(name, p, prior)...)
		}
	}

	// What an update that failed left behind: it is in the record only.
	for _, name := range sortedNames(r.Machines) {
		_, wanted := p.Machines[name]
		_, listed := prior.Machines[name]
		_, adopted := r.renamed[name]

		if !wanted && !listed && !adopted && !r.leaves(name) {
			left := cluster.Machine{Name: name, Role: prior.roleOf(name), Address: r.addresses[name]}
			if g := prior.groupOf(name); g != nil {
				left.Pool = g.Pool
			}

			r.Remove(name, left)
		}
	}

	for _, m := range r.removed {
		if p.addressTaken(m) {
			// Something else is where it was, so that it cannot take part in its removal.
			state := r.Machines[m.Name]
			state.Access, state.Cause = cluster.Foreign, "another machine has its address"
			r.Machines[m.Name] = state
		}
	}

	for i, m := range r.removed {
		if former, ok := p.formerly(m); ok && m.NodeName == "" {
			r.removed[i].NodeName = p.Host.nameOf(p.Settings.Name, former)
		}
	}

	slices.SortFunc(r.removed, func(a, b cluster.Machine) int { return strings.Compare(a.Name, b.Name) })

	return diags
}

// changed reports whether any machine leaves, moves or goes by another name, so that the
// machines have to be looked at although nothing may be sent to them.
func (r *PriorState) changed() bool {
	return r.relocated || len(r.removed)+len(r.moved)+len(r.renamed) > 0
}

// compareMachine compares a machine with what was listed under its name.
func (r *PriorState) compareMachine(name string, now, before SetMachine) {
	known, recorded := r.Machines[name]

	r.relocated = r.relocated || now.Address != before.Address || !strings.EqualFold(now.uuid, before.uuid)

	switch {
	case recorded && exchanged(now, before, known):
		as := r.freeName(name + ReplacedSuffix)
		r.Machines[as], r.members[as], r.replaced[as] = known, r.members[name], name
		delete(r.Machines, name)
		delete(r.members, name)
		r.Remove(as, cluster.Machine{Name: as, Role: before.Group.Role, Address: before.Address, Pool: before.Group.Pool})
	case recorded:
		r.seek(name, now.Address, r.addresses[name], before.Address)
	}
}

// seek notes where else than at its address a machine may be: the first of the places that
// is another one.
func (r *PriorState) seek(name, now string, places ...string) {
	for _, place := range places {
		if place != "" && !sameAddress(now, place) {
			r.moved[name] = place

			return
		}
	}
}

// exchanged reports whether the user says that a machine is other hardware than the one
// that was recorded.
func exchanged(now, before SetMachine, known cluster.MachineState) bool {
	if now.uuid == "" || known.UUID == "" || strings.EqualFold(now.uuid, before.uuid) {
		return false
	}

	return !(cluster.Machine{UUID: now.uuid, Meta: now.meta.keyed()}).MayReport(known.UUID)
}

func (r *PriorState) freeName(name string) string {
	for free := name; ; free += "'" {
		if _, taken := r.Machines[free]; !taken {
			return free
		}
	}
}

// dismiss decides what becomes of a machine whose name is gone.
func (r *PriorState) dismiss(name string, p, prior MachineSet) finding.List {
	before := prior.Machines[name]

	known, recorded := r.Machines[name]
	if !recorded && !r.containers {
		return nil // it was never reached, and is not ours
	}

	successor := p.successor(before, known)
	if successor == "" {
		r.Remove(name, cluster.Machine{Name: name, Role: before.Group.Role, Address: before.Address, UUID: before.uuid, Pool: before.Group.Pool})

		return nil
	}

	now := p.Machines[successor]
	if _, listed := prior.Machines[successor]; listed || now.Group.Role != before.Group.Role {
		return finding.List{finding.Refused(p.machinePath(successor), "Unsupported exchange of machines",
			fmt.Sprintf("machine %s has the address or the hardware of %s (%s %s), which is not listed any more", successor, name, before.Group.Role, before.Address),
			"Talos cannot change the role of a machine in place, and a name that is taken cannot be given to another machine at once",
			fmt.Sprintf("Take %s out first and apply, which resets it, and add the machine again afterwards", name))}
	}

	r.rename(name, successor, before.Address, now.Address)

	return nil
}

// successor is the machine of a pool that has the address or the hardware of one which
// is not listed any more; empty when it is really gone.
func (p MachineSet) successor(before SetMachine, known cluster.MachineState) string {
	for _, name := range sortedNames(p.Machines) {
		now := p.Machines[name]
		told := now.uuid != "" && known.UUID != ""

		switch {
		case told && strings.EqualFold(now.uuid, known.UUID):
			return name
		case !told && sameAddress(now.Address, before.Address):
			return name
		}
	}

	return ""
}

// rename carries the record of a machine over to its new name.
func (r *PriorState) rename(from, to, before, now string) {
	r.Machines[to], r.members[to] = r.Machines[from], r.members[from]
	delete(r.Machines, from)
	delete(r.members, from)

	r.renamed[to] = from
	r.seek(to, now, r.addresses[from], before)
}

// Remove gives a machine up. One that waits in maintenance mode and left nothing behind
// carries nothing of the cluster any more: its hardware may belong to others by now. The
// pod of a container has to go in any case.
func (r *PriorState) Remove(name string, m cluster.Machine) {
	known := r.Machines[name]
	m.Container = r.containers

	if !m.Container && known.Access == cluster.Maintenance && known.NodeName == "" && r.members[name] == "" {
		delete(r.Machines, name)

		r.relocated = true

		return
	}

	m.NodeName, m.MemberID = known.NodeName, r.members[name]
	m.UUID = cmp.Or(known.UUID, m.UUID)

	r.removed = append(r.removed, m)
}

func (r *PriorState) leaves(name string) bool {
	return slices.ContainsFunc(r.removed, func(m cluster.Machine) bool { return m.Name == name })
}

// sameAddress compares two addresses by value.
func sameAddress(a, b string) bool {
	hostA, errA := tf.CanonicalHost(a)
	hostB, errB := tf.CanonicalHost(b)

	return errA == nil && errB == nil && hostA == hostB
}

// refuseLostQuorum refuses removals after which etcd could not go on, by what state
// knows: those of every control plane that is in it, and those that hardware which is
// gone has no vote for. Removing many machines at once is no reason: they leave one by
// one.
func refuseLostQuorum(p, prior MachineSet, recorded PriorState) finding.List {
	members := cluster.MembersOnRecord(p.Spec(recorded, Rendered{}), recorded.Machines)
	if len(members.Leaving) == 0 || !bootstrapped(recorded.phase) || !prior.takesCluster() {
		return nil
	}

	at := prior.controlPlanePath()

	switch {
	case members.LosesAll():
		return finding.List{finding.Refused(at, "Unsupported removal of machines",
			fmt.Sprintf("%s would leave, and no other control plane is known to be in the cluster", finding.MachinesNamed(members.Leaving)),
			"The data of etcd would go with the last one",
			fmt.Sprintf("Keep %s and apply, so that others join; then remove it. To give the cluster up, destroy the resource", members.Leaving[0]))}
	case members.LosesQuorum():
		return finding.List{finding.Refused(at, "Unsupported removal of machines",
			fmt.Sprintf("of %d members of etcd, those of %s are gone with their data, and less than a majority is left", members.Count, finding.Describe(members.Lost)),
			"Members are removed and added by the others, which have to be more than half of all",
			"Exchange one control plane at a time: put the other machines back, apply, and go on with the next. When a majority is lost for good, "+
				"restore etcd from a snapshot")}
	default:
		return nil
	}
}

// leftovers are the machines that an update left behind and that can still answer, so
// that a destroy of the resource has to reset them too.
func (r *PriorState) leftovers(p MachineSet) []cluster.Machine {
	r.compare(p, p) // nothing changes, so that there is nothing to say about it

	left := slices.DeleteFunc(slices.Clone(r.removed), p.addressTaken)
	r.removed = nil

	return left
}

// addressTaken reports whether a wanted machine has the address of one that leaves: then
// the latter cannot answer any more.
func (p MachineSet) addressTaken(m cluster.Machine) bool {
	for _, machine := range p.Machines {
		if sameAddress(machine.Address, m.Address) {
			return true
		}
	}

	return false
}

// controlPlanePath is where the control planes are listed.
func (p MachineSet) controlPlanePath() finding.Path {
	for _, g := range p.groups {
		if g.Role == cluster.ControlPlane {
			if p.Host != nil {
				return g.At.AtName("replicas")
			}

			return g.At.AtName("machines")
		}
	}

	return finding.Root("machines")
}

// finished reports whether a machine that was removed waits in maintenance mode, or is gone
// when it was a container, and left nothing behind, as far as a run saw.
func (r run) finished(m cluster.Machine) bool {
	have := r.result.Snapshot

	ended := cluster.Maintenance
	if m.Container {
		ended = cluster.Gone
	}

	if have.Machines[m.Name].Access != ended || !have.Kubernetes.Reachable {
		return false
	}

	if i := slices.IndexFunc(have.Kubernetes.Nodes, func(n cluster.Node) bool { return n.Name == m.NodeName }); i >= 0 {
		return false
	}

	return m.Role != cluster.ControlPlane || have.Etcd.Known &&
		!slices.ContainsFunc(have.Etcd.Members, func(e cluster.EtcdMember) bool { return e.ID == m.MemberID || e.Name == m.NodeName })
}

// record is the record of state by the names that machines have during a run.
func (r run) record(prior types.Map) types.Map {
	if prior.IsNull() || prior.IsUnknown() {
		return prior
	}

	values := prior.Elements()

	for _, names := range []map[string]string{r.replaced, r.renamed} {
		for now, before := range names {
			if value, ok := values[before]; ok {
				values[now] = value
				delete(values, before)
			}
		}
	}

	return types.MapValueMust(ObservedType(), values)
}

// departed reports whether a machine of state is not ours any more after a run, or is so
// under another name: only what is unfinished stays a difference.
func (r run) departed(name string) bool {
	for _, from := range r.renamed {
		if from == name {
			return true
		}
	}

	return slices.ContainsFunc(r.want.Removed, func(m cluster.Machine) bool { return m.Name == name && r.finished(m) })
}
