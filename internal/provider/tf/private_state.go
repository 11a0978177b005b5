package tf

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// PrivateState is the reading part of the framework's private state.
type PrivateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// PrivateStore is the writing part of the framework's private state.
type PrivateStore interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// StorePrivate writes a value to private state, as JSON.
func StorePrivate(ctx context.Context, private PrivateStore, key string, value any) diag.Diagnostics {
	encoded, err := json.Marshal(value)
	if err != nil {
		return diag.Diagnostics{Bug(fmt.Sprintf("%s cannot be written to private state: %s", key, err))}
	}

	return private.SetKey(ctx, key, encoded)
}

// ReadPrivate reads what StorePrivate wrote. The value stays unchanged when nothing was: the object was made by an
// earlier release, or lost its private state.
func ReadPrivate(ctx context.Context, private PrivateState, key string, value any) diag.Diagnostics {
	encoded, diags := private.GetKey(ctx, key)
	if len(encoded) == 0 {
		return diags
	}

	if err := json.Unmarshal(encoded, value); err != nil {
		diags.Append(Bug(fmt.Sprintf("%s of private state cannot be read: %s", key, err)))
	}

	return diags
}

// Remembers reports whether a boolean in private state is true.
func Remembers(ctx context.Context, private PrivateState, key string, diags *diag.Diagnostics) (yes bool) {
	diags.Append(ReadPrivate(ctx, private, key, &yes)...)

	return yes
}
