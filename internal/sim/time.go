package sim

import (
	"context"

	timeres "github.com/siderolabs/talos/pkg/machinery/resources/time"
)

// LoseTime lets no time server answer the machine: its clock is not in sync, from the next
// boot on, and in this one if it was not in sync yet. Containers, and machines whose
// configuration disables the time, count as in sync. FindTime undoes it.
func (m *Machine) LoseTime() { m.setTimeLost(true) }

// FindTime lets time servers answer the machine, which is the default.
func (m *Machine) FindTime() { m.setTimeLost(false) }

func (m *Machine) setTimeLost(lost bool) {
	m.sim.update(func() { m.timeLost = lost })

	if b := m.current(); b != nil {
		b.followTime()
	}
}

// followTime publishes whether the time is in sync. It stays so until the next boot.
func (b *boot) followTime() {
	off := b.m.platform == Container
	if cfg := b.config(); complete(cfg) && cfg.NetworkTimeSyncConfig() != nil {
		off = off || cfg.NetworkTimeSyncConfig().Disabled()
	}

	b.sim.update(func() {
		if off || !b.m.timeLost {
			b.synced.Store(true)
		}
	})

	synced := b.synced.Load()
	modify(b, timeres.NewStatus(), func(r *timeres.Status) { r.TypedSpec().Synced, r.TypedSpec().SyncDisabled = synced, off })
	b.refreshStatus()
}

// awaitTime holds a service until the time is in sync, as the conditions of etcd, the
// kubelet and trustd do (Talos 1.13, system/services).
func (b *boot) awaitTime(ctx context.Context, service string) error {
	if b.synced.Load() {
		return ctx.Err()
	}

	b.services.set(service, serviceWaiting, "Waiting for time sync")

	return b.sim.await(ctx, b.synced.Load)
}
