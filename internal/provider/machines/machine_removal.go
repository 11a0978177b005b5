package machines

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// takeOut removes the one machine of a set from its cluster: in order while the cluster keeps running, with its data
// when the cluster ends with it (cluster.Ends has the rule).
func takeOut(ctx context.Context, m *providerdata.ProviderData, p machineset.Set, record machineset.Record) run {
	recorded, _ := machineset.NewPriorState(record, p, p) // a machine may be elsewhere than recorded

	s, err := openSession(ctx, m, pki.Changing, p.Unpinned(), recorded, false)
	if err != nil {
		return run{err: err}
	}

	defer s.Close()

	want := s.want
	want.Machines, want.Removed, want.OtherControlPlanes = nil, want.Machines, p.Others

	result, err := s.runner.Remove(ctx, want)

	s.replacement.Removed(err)

	if err == nil {
		m.Ledger().Release(p.Owner)
	}

	return s.ended(ctx, recorded, result, err)
}

// warnOfRemoved warns of machines that left the cluster in another way than a removal intends.
func (r run) warnOfRemoved() finding.List {
	found := machineset.WarnOfRelinquished(r.result.Relinquished)
	if r.err == nil {
		found.Append(machineset.WarnOfNotReset(r.result.Left)...)
	}

	found.Append(machineset.WarnOfAway(r.result.Away)...)

	return append(found, machineset.WarnOfUnwiped(r.result.Unwiped)...)
}

// lockOf is the right to disrupt machines of a cluster. All runs on it share the lock, whatever its name and address
// in their configurations.
func lockOf(p machineset.Set, bundle *pki.Bundle, api *kubernetes.Client) *lock.Lock {
	return api.Lock(lock.Options{Cluster: p.Identity(bundle), Name: runName(p)})
}

// runName is the name of a run for other runs that wait for it: a cluster has one control plane as a separate
// resource, and any number of pools and machines.
func runName(p machineset.Set) string {
	if !p.Single && p.OwnsControlPlane() {
		return p.Object
	}

	return p.Object + " " + finding.Briefly(p.Names())
}
