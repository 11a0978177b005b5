package providerdata

import (
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// plannedRemovals is what would become of the machines of resources that a process planned an update of, by the id of
// their owner. Under -replace the CLIs ask for the plan of the update first and then for that of a create, which sees
// no state. Of the latter they show errors, and no warnings. (Nor can it plan a value that tells: in the apply the CLIs
// plan the create once more, with neither state nor private state, and expect the same.)
type plannedRemovals struct {
	mu sync.Mutex
	by map[string]func() string
}

// RememberRemoval keeps what tells of the removal of the machines of an owner.
func (m *ProviderData) RememberRemoval(
	ctx context.Context, private tf.PrivateStore, owner types.String, tell func() string,
) diag.Diagnostics {
	if m == nil {
		return nil
	}

	m.removals.mu.Lock()
	defer m.removals.mu.Unlock()

	m.removals.by[owner.ValueString()] = tell

	return tf.StoreOwner(ctx, private, owner)
}

// RefuseReplace refuses to plan the replacement of a protected resource, and tells what it would wipe.
func (m *ProviderData) RefuseReplace(
	ctx context.Context, private tf.PrivateState, kind string, id types.String,
) finding.List {
	const replaced = "replaced, and its machines reset"

	var problems diag.Diagnostics

	locked := finding.Locked(kind, id.ValueString(), replaced, tf.LockedAgainstReplace(ctx, private, &problems))
	if !tf.ProtectedFromReplace(ctx, private, &problems) {
		return append(tf.Findings(problems), locked...)
	}

	refused := finding.Protected(kind, id.ValueString(), replaced)

	if m != nil {
		m.removals.mu.Lock()
		tell := m.removals.by[tf.ReplacedOwner(ctx, private)]
		m.removals.mu.Unlock()

		if tell != nil {
			refused.Detail += tell()
		}
	}

	return finding.List{refused}
}
