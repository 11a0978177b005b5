package machines

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// surroundingsKey is the key of the surroundings in private state. What a plan passes to later operations has
// separate keys (tf/planned.go).
const surroundingsKey = "surroundings"

// storeSurroundings stores what is recorded besides machines.
func storeSurroundings(ctx context.Context, private tf.PrivateStore, s record.Surroundings) diag.Diagnostics {
	return append(tf.StorePrivate(ctx, private, surroundingsKey, s), forgetFormer(ctx, private)...)
}

// readSurroundings reads what storeSurroundings stored. A create gets the surroundings of the object that it
// replaces.
func readSurroundings(ctx context.Context, private tf.PrivateState) (record.Surroundings, diag.Diagnostics) {
	var stored *record.Surroundings

	diags := tf.ReadPrivate(ctx, private, surroundingsKey, &stored)

	switch {
	case diags.HasError():
		return record.Surroundings{}, diags
	case stored == nil:
		return formerSurroundings(ctx, private)
	default:
		return *stored, diags
	}
}

// surroundings is the record besides the machines of a set after an observation. What the observation did not show
// stays: an unreachable cluster proves nothing, and only Kubernetes knows other resources.
func (p writtenSet) surroundings(
	before record.Surroundings, want cluster.Spec, have cluster.Snapshot,
) record.Surroundings {
	now := before

	if bundle, err := pki.Parse([]byte(p.Secrets)); err == nil { // otherwise the user of the secrets reported it
		now.Secrets = record.Secrets{Digest: bundle.CurrentDigest(), Identity: bundle.Identity()}
	}

	if want.Machines != nil && have.Machines != nil {
		now.Unseen = machineset.LookAt(want, have).Unseen
	}

	if !have.Kubernetes.Reachable {
		return now
	}

	if have.Hooks != nil {
		now.Hooks = have.Hooks
	}

	now.OtherKeys = cluster.HoldersOf(want, have)

	if p.TakesCluster() && p.Host == nil {
		now.OtherControlPlanes = addressesBeside(want, have)
	}

	return now
}

// addressesBeside are the addresses of control planes of other resources.
func addressesBeside(want cluster.Spec, have cluster.Snapshot) (addresses []string) {
	want.OtherControlPlanes = nil // these are the ones to find

	for _, node := range cluster.OtherNodes(want, have) {
		if address := node.Address(); address != "" {
			addresses = append(addresses, address)
		}
	}

	return addresses
}

// recall fills in the record besides the machines of a set. The UID of the host cluster and the identity of the
// secrets are also in attributes (recallSecrets), which have precedence.
func (p *writtenSet) recall(s record.Surroundings) {
	for _, holder := range s.OtherKeys {
		holder.Settled = true // nothing else is known of it
		p.Holders = append(p.Holders, holder)
	}

	p.StartedHooks = s.Hooks

	if s.Unseen != nil {
		p.LastLook = &machineset.LastLook{Unseen: s.Unseen}
	}

	if p.Host != nil {
		uid := p.Host.Recorded.UID
		p.Host.Recorded = workload.Identity(s.Host)
		p.Host.Recorded.UID = cmp.Or(uid, s.Host.UID)

		return
	}

	if p.TakesCluster() {
		for _, address := range s.OtherControlPlanes {
			p.Others = append(p.Others, machineset.ControlPlanesAt(address))
		}
	}
}
