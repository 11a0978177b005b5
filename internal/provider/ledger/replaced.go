package ledger

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// RememberRead keeps the removal of the machines of an object that was read, by the ID of their owner.
func (l *Ledger) RememberRead(owner types.String, removal Removal) {
	removal.read = true
	l.RememberRemoval(owner, removal)
}

// RememberRemoval keeps the removal of the machines of an owner.
func (l *Ledger) RememberRemoval(owner types.String, removal Removal) {
	l.removals.put(owner.ValueString(), removal)
}

// ForgetRemoval notes that an object is destroyed for good.
func (l *Ledger) ForgetRemoval(owner types.String) { l.removals.drop(owner.ValueString()) }

// Replaced is the object that the plan of a create replaces; ok is false when no replaced object is known. tainted
// is true when it is identified only by its machines.
func (l *Ledger) Replaced(
	ctx context.Context, private tf.PrivateState, kind string, id types.String, p machineset.Set,
) (removal Removal, tainted, ok bool) {
	if tf.Replaces(ctx, private) {
		removal, ok = l.removals.get(tf.ReplacedOwner(ctx, private))

		return removal, false, ok
	}

	known := l.removals.all()

	for _, owner := range slices.Sorted(maps.Keys(known)) {
		if removal := known[owner]; removal.read && removal.Kind == kind && removal.isOf(id, p) {
			return removal, true, true
		}
	}

	return Removal{}, false, false
}

// isOf reports whether a new object consists of the machines of one in state: it has the same ID in the same
// cluster, or one of its addresses.
func (r Removal) isOf(id types.String, p machineset.Set) bool {
	now, before := clusterKey(p.Secrets), clusterKey(r.Set().Secrets)
	if now != "" && before != "" && now != before {
		return false
	}

	if now != "" && id.ValueString() == r.ID {
		return true
	}

	for _, machine := range p.Machines {
		for _, former := range r.Set().Machines {
			if machine.Address != "" && machineset.SameAddress(machine.Address, former.Address) {
				return true
			}
		}
	}

	return false
}

// RefuseReplace refuses to plan the replacement of a protected resource by a set, and says what it would wipe.
func (l *Ledger) RefuseReplace(
	ctx context.Context, private tf.PrivateState, kind string, id types.String, next machineset.Set,
) finding.List {
	removal, tainted, known := l.Replaced(ctx, private, kind, id, next)
	found := refuseRecorded(ctx, private, kind, id, removal)

	if tainted {
		found = removal.Refuse()
	}

	if known && !found.HasError() {
		found.Append(removal.Plan(next, tainted)...)
	}

	if tainted && found.HasError() {
		last := &found[len(found)-1]
		last.Detail += " The resource is tainted. To keep it and its machines, run `terraform untaint` or `tofu " +
			"untaint` with its address."
	}

	return found
}

// refuseRecorded refuses the replacement of an object that is protected in private state.
func refuseRecorded(
	ctx context.Context, private tf.PrivateState, kind string, id types.String, removal Removal,
) finding.List {
	const replaced = "replaced, and its machines reset"

	var problems diag.Diagnostics

	locked := finding.Locked(kind, id.ValueString(), replaced, tf.LockedAgainstReplace(ctx, private, &problems))
	if !tf.ProtectedFromReplace(ctx, private, &problems) {
		return append(tf.Findings(problems), locked...)
	}

	refused := finding.Protected(kind, id.ValueString(), replaced)
	if removal.Tell != nil {
		refused.Detail += removal.Tell()
	}

	return finding.List{refused}
}
