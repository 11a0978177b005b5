package tf

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// protectionKey mirrors deletion_protection in private state, where the create leg of a replacement still finds it.
const protectionKey = "deletion_protection"

// ownerKey has the id of the owner of machines in private state, for the create leg of a replacement.
const ownerKey = "owner"

// StoreProtection mirrors deletion_protection in private state; every operation that stores state does it.
func StoreProtection(ctx context.Context, private PrivateStore, on types.Bool) diag.Diagnostics {
	return StorePrivate(ctx, private, protectionKey, on.ValueBool())
}

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

// ProtectedFromReplace reads what StoreProtection stored, in the create leg of a replacement: of that ModifyPlan sees
// no state, but the private state of the object that goes. A tainted object has none any more, so that Delete checks
// again.
func ProtectedFromReplace(ctx context.Context, private PrivateState, diags *diag.Diagnostics) bool {
	return Remembers(ctx, private, protectionKey, diags)
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
