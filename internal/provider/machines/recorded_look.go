package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// lookKey is where private state holds which machines did not answer as themselves when machines were read last. A plan
// refuses addresses of other machines by it. An object without it refuses none: the apply does.
const lookKey = "unseen_machines"

// recordLook stores what a snapshot found. A run that did not get to its machines found nothing.
func recordLook(
	ctx context.Context, private tf.PrivateStore, want cluster.Spec, have cluster.Snapshot,
) diag.Diagnostics {
	if want.Machines == nil || have.Machines == nil {
		return nil
	}

	return tf.StorePrivate(ctx, private, lookKey, machineset.LookAt(want, have).Unseen)
}

// recallLook reads it.
func (p *writtenSet) recallLook(ctx context.Context, private tf.PrivateState) diag.Diagnostics {
	var unseen []string

	diags := tf.ReadPrivate(ctx, private, lookKey, &unseen)
	if unseen != nil {
		p.LastLook = &machineset.LastLook{Unseen: unseen}
	}

	return diags
}
