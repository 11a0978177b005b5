package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

// Restore has the outcomes of etcd's own tool. Without a sum, it cannot detect damage that keeps the database
// readable.
func (e *Model) Restore(_ context.Context, h Host, snapshot string, skipHashCheck bool) (Node, error) {
	m := e.newMember(h)

	if err := m.c.Store.ReadSnapshot(snapshot); err != nil {
		return nil, fmt.Errorf("error verifying snapshot: %w", err)
	}

	if err := objects.CheckSum(snapshot, skipHashCheck); err != nil {
		return &ruinedMember{m}, fmt.Errorf("error recovering from the snapshot: %w", err)
	}

	m.restored = time.Now()

	return m, nil
}

// RaftSnapshots has the one that a restored etcd begins with: its index is the number of
// members, and its term 1 (etcd 3.6, etcdutl, saveWALAndSnap). No other is ever made here.
func (m *modelMember) RaftSnapshots() (map[string]time.Time, error) {
	if m.restored.IsZero() {
		return nil, nil
	}

	return map[string]time.Time{"0000000000000001-0000000000000001.snap": m.restored}, nil
}

// newMember is the first of a new cluster.
func (e *Model) newMember(h Host) *modelMember {
	c := &ModelCluster{world: e.World, Store: objects.NewStore(), version: agreedVersion{follow: e.Follow}}
	m := &modelMember{world: e.World, c: c, memberID: rand.Uint64(), name: h.Hostname, started: true}
	m.world.Update(func() {
		m.settle(h)
		m.peer = m.announced
	})
	c.members = []*modelMember{m}

	return m
}
