package tf

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// What a plan passes to later operations has separate keys in private state, apart from the record: the create of a
// replacement has it in place of a state, and so has talosop_secrets.

// ownerKey is the key for the ID of the machines' owner in private state, for the create of a replacement.
const ownerKey = "owner"

// lockedKey is the key for the names of locked machines in private state, for the create of a replacement.
const lockedKey = "locked"

// StoreLocked stores which machines are locked, for the create of a replacement.
func StoreLocked(ctx context.Context, private PrivateStore, machines []string) diag.Diagnostics {
	return StorePrivate(ctx, private, lockedKey, machines)
}

// LockedAgainstReplace reads what StoreLocked stored.
func LockedAgainstReplace(ctx context.Context, private PrivateState, diags *diag.Diagnostics) (machines []string) {
	diags.Append(ReadPrivate(ctx, private, lockedKey, &machines)...)

	return machines
}

// Replaces reports whether the plan of a create is that of a replacement: it has the private state of the replaced
// object, unless that is tainted.
func Replaces(ctx context.Context, private PrivateState) bool {
	marker, _ := private.GetKey(ctx, protectionKey)

	return len(marker) > 0
}

// StoreOwner stores the ID of the machines' owner, for the create of a replacement.
func StoreOwner(ctx context.Context, private PrivateStore, owner types.String) diag.Diagnostics {
	return StorePrivate(ctx, private, ownerKey, owner.ValueString())
}

// ReplacedOwner is the ID that StoreOwner stored; empty without one.
func ReplacedOwner(ctx context.Context, private PrivateState) (owner string) {
	_ = ReadPrivate(ctx, private, ownerKey, &owner) // nothing is stored

	return owner
}

// leftKey is the key for the names of machines that the plan of a destroy leaves to other resources, in private
// state.
const leftKey = "left_to_others"

// StoreLeft stores which machines the plan of a destroy leaves to other resources, for the destroy.
func StoreLeft(ctx context.Context, private PrivateStore, machines []string) diag.Diagnostics {
	return StorePrivate(ctx, private, leftKey, append([]string{}, machines...))
}

// ForgetLeft removes what StoreLeft stored: a failed destroy leaves it, and the plan of a replacement uses the
// state.
func ForgetLeft(ctx context.Context, private PrivateStore) diag.Diagnostics {
	return private.SetKey(ctx, leftKey, nil)
}

// PlannedLeft is what StoreLeft stored; nil when no plan of a destroy did.
func PlannedLeft(ctx context.Context, private PrivateState, diags *diag.Diagnostics) (machines []string) {
	diags.Append(ReadPrivate(ctx, private, leftKey, &machines)...)

	return machines
}

// legKey is the key for the kind of the preceding plan in private state: Delete does not know whether the object is
// created again.
const legKey = "planned"

// The kinds of plans that end in a Delete: that of a removal, and that of the create in a replacement, even of a
// tainted object.
const (
	legDestroy = "destroy"
	legCreate  = "create"
)

// legLeaves is the plan of a change that replaces an object by another one: its machines leave their cluster, or
// their role in it, for good. legUpdate is that of any other change, which an option of the CLI may turn into a
// replacement.
const (
	legLeaves = "leaves"
	legUpdate = "update"
)

// PlannedUpdate notes in the private state of a plan what a change does to machines, for the create of a
// replacement. leaves is true when the change itself replaces the object.
func PlannedUpdate(ctx context.Context, private PrivateStore, leaves bool) diag.Diagnostics {
	if leaves {
		return StorePrivate(ctx, private, legKey, legLeaves)
	}

	return StorePrivate(ctx, private, legKey, legUpdate)
}

// PlannedDestroy notes in the private state of a plan that the object is removed for good.
func PlannedDestroy(ctx context.Context, private PrivateStore) diag.Diagnostics {
	return StorePrivate(ctx, private, legKey, legDestroy)
}

// PlannedCreate notes in the private state of a plan that an object is created. If the plan also destroys one, it is
// a replacement. prior is the private state of the plan of the change. others are the control planes of other
// resources that the cluster then has; nil while they are unknown. leaves is true when the new object is of another
// cluster.
func PlannedCreate(
	ctx context.Context, prior PrivateState, private PrivateStore, others []string, leaves bool,
) diag.Diagnostics {
	leg := legCreate

	var change string
	if diags := ReadPrivate(ctx, prior, legKey, &change); !diags.HasError() && (leaves || change == legLeaves) {
		leg = legDestroy
	}

	return append(StorePrivate(ctx, private, legKey, leg), StorePrivate(ctx, private, besideKey, others)...)
}

// besideKey is the key for the others of PlannedCreate.
const besideKey = "control_planes_beside"

// DeletesToReplace reports whether Delete is part of a replacement: every plan except one that removes the object
// for good. others is what PlannedCreate stored.
func DeletesToReplace(ctx context.Context, private PrivateState) (others []string, replaces bool) {
	var leg string

	_ = ReadPrivate(ctx, private, legKey, &leg) // an unreadable value is no removal for good
	_ = ReadPrivate(ctx, private, besideKey, &others)

	return others, leg != legDestroy
}
