package provider

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// takeOut removes the one machine of a pool from its cluster: in order while the cluster
// lives on, with its data when the cluster ends with it (cluster.Ends has the rule).
func (m *machinery) takeOut(ctx context.Context, p pool, recorded recordedPool) run {
	s, err := m.open(ctx, p, recorded, false)
	if err != nil {
		return run{err: err}
	}

	defer s.close()

	want := s.want
	want.Machines, want.Removed, want.Beside = nil, want.Machines, p.single.beside

	result, err := s.runner.Remove(ctx, want)

	return s.ended(recorded, result, err)
}

// lockOf is the right to disrupt machines of a cluster, which all runs on it share,
// whatever they call the cluster and wherever they reach it.
func lockOf(p pool, bundle *pki.Bundle, api *kubernetes.Client) *kubernetes.Lock {
	name := p.object
	if p.single != nil {
		name += " " + describe(p.names())
	}

	return api.Lock(kubernetes.LockOptions{Cluster: bundle.Authorities()[0].Fingerprint, Name: name})
}
