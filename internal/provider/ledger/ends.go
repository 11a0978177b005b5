package ledger

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// PlanReplaced notes the machines that a plan resets to create the same object from them again.
func (l *Ledger) PlanReplaced(p machineset.Set, object string, machines []cluster.Machine) {
	of := clusterKey(p.Secrets)

	l.mu.Lock()
	defer l.mu.Unlock()

	for _, m := range machines {
		for _, key := range plannedKeys(of, m, true) {
			l.wiped.by[key] = plannedObject{object, p.Owner}
		}
	}
}

// PlanEnd notes that a plan resets the control planes of an object. It refuses a plan that resets every control
// plane of the cluster when one of them is protected, or others join meanwhile.
func (l *Ledger) PlanEnd(p machineset.Set, object, operation string) finding.List {
	if !p.OwnsControlPlane() {
		return nil
	}

	end := l.planEnd(p, func(end *plannedEnd) {
		end.going = append(end.going, p)
		end.replaced = end.replaced || operation == finding.OperationReplace

		if p.Protected {
			end.protected = object
		}
	})

	switch {
	case !l.allGo(end):
		return nil
	case end.protected != "":
		return finding.List{finding.ProtectedEnd(object, operation, end.protected)}
	default:
		return end.refuseJoin()
	}
}

// PlanInTurn notes that a plan replaces a single control plane by next. It refuses to replace several of them when
// the apply may not be able to do it in turn:
//
//   - A replacement that an option forces may come from replace_triggered_by. The CLIs change the trigger once all
//     removals are done, and create the machines after that (Terraform, docs/destroying.md), so that no machine joins
//     before the last one has left. A provider cannot distinguish it from -replace.
//   - Unknown endpoints come from machines that the same plan creates, and the creates wait for all of these.
//
// Tainted objects have no such wait.
func (l *Ledger) PlanInTurn(p, next machineset.Set, object string, tainted bool) finding.List {
	if !p.Single || !p.OwnsControlPlane() {
		return nil
	}

	end := l.planEnd(p, func(end *plannedEnd) {
		end.inTurn = append(end.inTurn, object)
		end.ordered = end.ordered || !tainted || next.Single && next.Others == nil
	})
	if !end.ordered || len(end.inTurn) < 2 {
		return nil
	}

	return finding.List{severalReplaced.With(finding.Args{"objects": end.inTurn})}
}

// PlanJoins notes the control planes that join a cluster by a plan.
func (l *Ledger) PlanJoins(p machineset.Set, object string, machines []cluster.Machine) finding.List {
	plane := func(m cluster.Machine) bool { return m.Role == step.ControlPlane }
	if p.Secrets == "" || !slices.ContainsFunc(machines, plane) {
		return nil
	}

	end := l.planEnd(p, func(end *plannedEnd) { end.joins = object })
	if !l.allGo(end) {
		return nil
	}

	return end.refuseJoin()
}

// planEnd changes what is known of the cluster of a set, and returns the result.
func (l *Ledger) planEnd(p machineset.Set, change func(*plannedEnd)) plannedEnd {
	return l.ends.change(clusterKey(p.Secrets), func(end plannedEnd) plannedEnd {
		change(&end)

		return end
	})
}

// allGo reports whether every control plane of a cluster is reset, as far as one of the objects knows them.
func (l *Ledger) allGo(end plannedEnd) bool {
	return slices.ContainsFunc(end.going, func(p machineset.Set) bool {
		return p.EndsWith(func(others []cluster.Machine) bool { return l.AllPlannedWiped(p, others) })
	})
}

// refuseJoin refuses to add control planes to a cluster in the plan that destroys all existing ones: the two have no
// order. A replacement waits for the others by itself.
func (e plannedEnd) refuseJoin() finding.List {
	if e.joins == "" || e.replaced {
		return nil
	}

	return finding.List{destroyedWhileJoining.With(finding.Args{"joining": e.joins})}
}
