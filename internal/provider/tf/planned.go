package tf

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// What a plan tells the operations that follow it is in private state under keys of its own, and not with what is
// remembered: the create leg of a replacement has it in the place of a state, and of talosop_secrets, too.

// ownerKey has the id of the owner of machines in private state, for the create leg of a replacement.
const ownerKey = "owner"

// lockedKey has the names of locked machines in private state, for the create leg of a replacement.
const lockedKey = "locked"

// StoreLocked keeps which machines are locked where the create leg of a replacement finds it.
func StoreLocked(ctx context.Context, private PrivateStore, machines []string) diag.Diagnostics {
	return StorePrivate(ctx, private, lockedKey, machines)
}

// LockedAgainstReplace is what StoreLocked stored.
func LockedAgainstReplace(ctx context.Context, private PrivateState, diags *diag.Diagnostics) (machines []string) {
	diags.Append(ReadPrivate(ctx, private, lockedKey, &machines)...)

	return machines
}

// Replaces reports whether the plan of a create is that of a replacement: it has the private state of the object that
// goes, unless that is tainted.
func Replaces(ctx context.Context, private PrivateState) bool {
	marker, _ := private.GetKey(ctx, protectionKey)

	return len(marker) > 0
}

// StoreOwner keeps the id of the owner of machines where the create leg of a replacement finds it.
func StoreOwner(ctx context.Context, private PrivateStore, owner types.String) diag.Diagnostics {
	return StorePrivate(ctx, private, ownerKey, owner.ValueString())
}

// ReplacedOwner is the id that StoreOwner stored; empty where there is none.
func ReplacedOwner(ctx context.Context, private PrivateState) (owner string) {
	_ = ReadPrivate(ctx, private, ownerKey, &owner) // nothing is stored

	return owner
}

// leftKey has the names of machines that the plan of a destroy leaves to other resources, in private state.
const leftKey = "left_to_others"

// StoreLeft keeps which machines the plan of a destroy leaves to other resources, for the destroy.
func StoreLeft(ctx context.Context, private PrivateStore, machines []string) diag.Diagnostics {
	return StorePrivate(ctx, private, leftKey, append([]string{}, machines...))
}

// ForgetLeft takes away what StoreLeft stored: a destroy that failed leaves it, and the plan of a replacement goes by
// state.
func ForgetLeft(ctx context.Context, private PrivateStore) diag.Diagnostics {
	return private.SetKey(ctx, leftKey, nil)
}

// PlannedLeft is what StoreLeft stored; nil where no plan of a destroy did.
func PlannedLeft(ctx context.Context, private PrivateState, diags *diag.Diagnostics) (machines []string) {
	diags.Append(ReadPrivate(ctx, private, leftKey, &machines)...)

	return machines
}

// legKey has the kind of plan that an operation follows, in private state: Delete is not told whether the object is
// created again.
const legKey = "planned"

// The kinds of plans that end in a Delete: that of a removal, and the create leg of a replacement, also of an object
// that is tainted.
const (
	legDestroy = "destroy"
	legCreate  = "create"
)

// legLeaves is the plan of a change that replaces an object by another one: its machines leave their cluster, or their
// role in it, for good. legUpdate is that of any other change, which an option of the CLI may make a replacement of.
const (
	legLeaves = "leaves"
	legUpdate = "update"
)

// PlannedUpdate notes in the private state of a plan what a change does to machines, for the create leg of a
// replacement. leaves is true where the change itself replaces the object.
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

// PlannedCreate notes in the private state of a plan that an object is created. Where the plan also destroys one, it is
// a replacement. prior is the private state of the plan of the change. others are the control planes of other resources
// that the cluster then has; nil while they are unknown. leaves is true where the new object is of another cluster.
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

// besideKey has the others of PlannedCreate.
const besideKey = "control_planes_beside"

// DeletesToReplace reports whether Delete is part of a replacement: any plan but one that removes the object for good.
// others is what PlannedCreate stored.
func DeletesToReplace(ctx context.Context, private PrivateState) (others []string, replaces bool) {
	var leg string

	_ = ReadPrivate(ctx, private, legKey, &leg) // what cannot be read is no removal for good
	_ = ReadPrivate(ctx, private, besideKey, &others)

	return others, leg != legDestroy
}
