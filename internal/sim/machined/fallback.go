package machined

import (
	metakeys "github.com/siderolabs/talos/pkg/machinery/meta"
)

// confirmUpgrade drops the rollback entry once a boot was running and ready (Talos 1.13,
// DropUpgradeFallbackController): from then on a failure reboots into the same system.
func (b *Boot) confirmUpgrade() {
	if b.confirmed.CompareAndSwap(false, true) && b.Platform == Metal {
		b.DeleteMeta(metakeys.Upgrade)
	}
}

// Fail is the end of machined after a fatal error. It rolls back to the previous boot entry if the current one has
// not proved itself yet, and reboots (Talos 1.13, machined main.go handle, revert.go).
func (b *Boot) Fail(err error) {
	b.World.Logf("%s: %v", b.name, err)

	b.World.Update(func() {
		d := &b.Disk
		if _, unproved := d.meta[metakeys.Upgrade]; !unproved {
			return
		}

		if err := d.Flip(); err != nil {
			b.World.Logf("%s: failed to revert bootloader: %v", b.name, err)

			return
		}

		delete(d.meta, metakeys.Upgrade)
		b.World.Logf("%s: reverting failed upgrade, switching to %s", b.name, d.Entry.Version)
	})

	b.end(Rebooted)
}
