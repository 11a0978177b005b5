package tf

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// protectionKey mirrors deletion_protection in private state, where the create of a replacement still finds it.
const protectionKey = "deletion_protection"

// StoreProtection mirrors deletion_protection in private state; every operation that stores state does it.
func StoreProtection(ctx context.Context, private PrivateStore, on types.Bool) diag.Diagnostics {
	return StorePrivate(ctx, private, protectionKey, on.ValueBool())
}

// ProtectedFromReplace reads what StoreProtection stored, in the create of a replacement. Its ModifyPlan sees no
// state, but the private state of the replaced object. A tainted object has none any more, so Delete checks again.
func ProtectedFromReplace(ctx context.Context, private PrivateState, diags *diag.Diagnostics) bool {
	return Remembers(ctx, private, protectionKey, diags)
}
