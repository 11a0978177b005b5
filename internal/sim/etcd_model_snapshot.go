package sim

import (
	"context"
	"fmt"
	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
	"math/rand/v2"
	"time"
)

// restore has the outcomes of etcd's own tool. What it cannot see is damage that keeps the
// database readable where no sum is asked for.
func (e *modelEtcd) restore(_ context.Context, h etcdHost, snapshot string, skipHashCheck bool) (etcdNode, error) {
	m := e.newMember(h)

	if err := m.c.store.ReadSnapshot(snapshot); err != nil {
		return nil, fmt.Errorf("error verifying snapshot: %w", err)
	}

	if err := objects.CheckSum(snapshot, skipHashCheck); err != nil {
		return &ruinedMember{m}, fmt.Errorf("error recovering from the snapshot: %w", err)
	}

	m.restored = time.Now()

	return m, nil
}

// raftSnapshots has the one that a restored etcd begins with: its index is the number of
// members, and its term 1 (etcd 3.6, etcdutl, saveWALAndSnap). No other is ever made here.
func (m *modelMember) raftSnapshots() (map[string]time.Time, error) {
	if m.restored.IsZero() {
		return nil, nil
	}

	return map[string]time.Time{"0000000000000001-0000000000000001.snap": m.restored}, nil
}

// newMember is the first of a new cluster.
func (e *modelEtcd) newMember(h etcdHost) *modelMember {
	c := &modelCluster{store: objects.NewStore()}
	m := &modelMember{world: e.world, c: c, memberID: rand.Uint64(), name: h.hostname, started: true}
	m.world.update(func() {
		m.settle(h)
		m.peer = m.announced
	})
	c.members = []*modelMember{m}

	return m
}
