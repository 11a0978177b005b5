package machined

import (
	"context"

	timeres "github.com/siderolabs/talos/pkg/machinery/resources/time"
)

// LoseTime lets no time server answer the machine: its clock is not in sync, from the next
// boot on, and in this one if it was not in sync yet. Containers, and machines whose
// configuration disables the time, count as in sync. FindTime undoes it.
func (m *Hardware) LoseTime() { m.setTimeLost(true) }

// FindTime makes time servers answer the machine, which is the default.
func (m *Hardware) FindTime() { m.setTimeLost(false) }

func (m *Hardware) setTimeLost(lost bool) {
	m.World.Update(func() { m.timeLost = lost })

	if b := m.live(); b != nil {
		b.followTime()
	}
}

// followTime publishes whether the time is in sync. It stays so until the next boot.
func (b *Boot) followTime() {
	off := b.Platform == Container
	if cfg := b.Config(); Complete(cfg) && cfg.NetworkTimeSyncConfig() != nil {
		off = off || cfg.NetworkTimeSyncConfig().Disabled()
	}

	b.World.Update(func() {
		if off || !b.timeLost {
			b.Synced.Store(true)
		}
	})

	synced := b.Synced.Load()
	Modify(b, timeres.NewStatus(),
		func(r *timeres.Status) { r.TypedSpec().Synced, r.TypedSpec().SyncDisabled = synced, off })
	b.RefreshStatus()
}

// AwaitTime holds a service until the time is in sync, as the conditions of etcd, the
// kubelet and trustd do (Talos 1.13, system/services).
func (b *Boot) AwaitTime(ctx context.Context, service string) error {
	if b.Synced.Load() {
		return ctx.Err()
	}

	b.Services.Set(service, ServiceWaiting, "Waiting for time sync")

	return b.World.Await(ctx, b.Synced.Load)
}
