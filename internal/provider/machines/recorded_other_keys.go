package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Which keys the machines of other resources carry is in private state: what a plan can do while keys are turned over
// depends on it.

// otherKeysKey is where private state holds the keys of machines of other resources.
const otherKeysKey = "other_keys"

// recordedKeys are those of a machine of another resource.
type recordedKeys struct {
	Name         string `json:"name"`
	ControlPlane bool   `json:"control_plane,omitempty"`
	Keys         string `json:"keys,omitempty"`
}

// recordOtherKeys stores what nodes of other resources say of their keys, while Kubernetes tells them.
func recordOtherKeys(
	ctx context.Context, private tf.PrivateStore, want cluster.Spec, have cluster.Snapshot,
) diag.Diagnostics {
	if !have.Kubernetes.Reachable {
		return nil
	}

	holders := []recordedKeys{}
	for _, h := range cluster.HoldersOf(want, have) {
		holders = append(holders, recordedKeys{h.Name, h.ControlPlane, h.Keys.String()})
	}

	return tf.StorePrivate(ctx, private, otherKeysKey, holders)
}

// recallOtherKeys reads them.
func recallOtherKeys(ctx context.Context, private tf.PrivateState) (rotation.Cluster, diag.Diagnostics) {
	var (
		stored  []recordedKeys
		holders rotation.Cluster
	)

	diags := tf.ReadPrivate(ctx, private, otherKeysKey, &stored)

	for _, h := range stored {
		holders = append(holders, rotation.Holder{Name: h.Name, ControlPlane: h.ControlPlane, Settled: true,
			Keys: rotation.ParseKeys(h.Keys)})
	}

	return holders, diags
}

// warnOfPendingKeys says what a rotation waits for that this resource cannot do.
func warnOfPendingKeys(want cluster.Spec, have cluster.Snapshot) finding.List {
	names := cluster.KeysPending(want, have)
	if len(names) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Keys are turned over in part", finding.Report{
		Now: []string{"the machines of this resource carry what is safe beside these nodes: " + finding.Describe(names)},
		Next: "Apply once more when the resources of these nodes have been applied. A node of which nothing is known, " +
			"because no talosop made it, holds everything up: put its keys into its annotation " + rotation.Annotation + ".",
	}.String())}
}
