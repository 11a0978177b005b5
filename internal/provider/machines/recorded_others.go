package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Where the control planes of other resources are that work beside those of a resource is in its private state: only
// Kubernetes tells, and a machine that lost its disk is repaired, and no second etcd begins, also while it is down.

// othersKey is where private state holds the addresses of control planes of other resources.
const othersKey = "other_control_planes"

// recordOthers stores the addresses of control planes of other resources, while Kubernetes tells them.
func (p writtenSet) recordOthers(
	ctx context.Context, private tf.PrivateStore, want cluster.Spec, have cluster.Snapshot,
) diag.Diagnostics {
	if !p.TakesCluster() || p.Host != nil || !have.Kubernetes.Reachable {
		return nil
	}

	want.OtherControlPlanes = nil // they are who is looked for
	addresses := []string{}

	for _, node := range cluster.OtherNodes(want, have) {
		if address := node.Address(); address != "" {
			addresses = append(addresses, address)
		}
	}

	return tf.StorePrivate(ctx, private, othersKey, addresses)
}

// recallOthers reads where control planes of other resources were last seen.
func (p *writtenSet) recallOthers(ctx context.Context, private tf.PrivateState) diag.Diagnostics {
	if !p.TakesCluster() {
		return nil
	}

	var addresses []string

	diags := tf.ReadPrivate(ctx, private, othersKey, &addresses)

	for _, address := range addresses {
		p.Others = append(p.Others, machineset.ControlPlanesAt(address))
	}

	return diags
}
