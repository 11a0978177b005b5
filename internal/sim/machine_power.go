package sim

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// PowerOn starts the machine and returns at once. It does nothing when it is on. One that is going off starts once
// it is.
func (m *Machine) PowerOn() {
	m.World.Lock()
	defer m.World.Unlock()

	before := m.power
	if before != nil && !before.ends || m.sim.closed {
		return
	}

	ctx, cancel := context.WithCancel(m.sim.ctx)
	p := &power{cancel: cancel, done: make(chan struct{})}
	m.power = p
	m.hang = false

	m.sim.work.Go(func() {
		defer close(p.done)
		defer cancel()

		if before != nil {
			<-before.done
		}

		m.run(ctx, p)

		m.World.Update(func() {
			if m.power == p {
				m.power, m.off = nil, true
			}
		})
	})
}

// PowerOff cuts the power: connections break, nothing is stopped in an orderly way.
// It returns when the machine is off. What is on its disk stays.
func (m *Machine) PowerOff() {
	if done := m.crash(); done != nil {
		<-done
	}
}

// crash cuts the power without waiting, so that it may be called while the machine
// serves a call. The channel (nil if the machine was off) is closed when it is off.
func (m *Machine) crash() <-chan struct{} {
	m.World.Lock()
	defer m.World.Unlock()

	if m.power == nil {
		return nil
	}

	p := m.power
	if m.boot != nil {
		m.boot.Crashed = true
	}

	p.ends = true
	p.cancel()

	return p.done
}

// HangNextReboot lets the machine go down at its next reboot (also the one after an
// installation) and never answer again, until PowerOff and PowerOn.
func (m *Machine) HangNextReboot() {
	m.World.Lock()
	defer m.World.Unlock()

	m.hang = true
}

// ChooseOtherEntry is a user at the console who restarts the machine and chooses the other entry in its boot menu.
// That counts for one boot: the default stays.
func (m *Machine) ChooseOtherEntry() error {
	m.PowerOff()

	var err error

	m.World.Update(func() { err = m.Disk.Choose() })

	if err != nil {
		return fmt.Errorf("choose a boot entry of %s: %w", m.Name(), err)
	}

	m.PowerOn()

	return nil
}

// Wipe switches the machine off and makes it blank: never installed, in maintenance
// mode at the next PowerOn. Other etcd members still list its member, as with a disk
// that was replaced.
func (m *Machine) Wipe() {
	m.PowerOff()

	m.World.Lock()
	node, snapshot := m.Disk.Etcd, m.Disk.Snapshot
	m.Disk = machined.Storage{Installed: m.Platform == machined.Container}
	m.World.Unlock()

	if node != nil {
		node.Wipe()
	}

	m.RemoveFile(snapshot)
}

// BreakEphemeral damages the file system of EPHEMERAL and restarts the machine: its boot waits for EPHEMERAL until it
// is wiped, with neither etcd nor kubelet. The data of its etcd member is lost.
func (m *Machine) BreakEphemeral() {
	m.PowerOff()
	m.World.Update(func() { m.Disk.Broken = true })
	m.PowerOn()
}

// FailWipe lets the next wipe of partitions fail on these volumes, or on all, as on a disk with errors: Talos wipes the
// others, leaves the user disks out, and reboots.
func (m *Machine) FailWipe(volumes ...string) {
	m.World.Update(func() { m.Disk.Failure = &machined.WipeFailure{Volumes: volumes} })
}

// FailDrop lets the next wipe of partitions fail because the kernel still uses one of them: Talos wiped all of them,
// leaves the user disks out, and reboots.
func (m *Machine) FailDrop() {
	m.World.Update(func() { m.Disk.Failure = &machined.WipeFailure{Busy: true} })
}

// Move gives the machine another free address of the site's network, the next one when addr is not set, as a new
// DHCP lease would. It cuts the power meanwhile: the new address holds from the next boot on, and a machine that
// was on boots at once. UUID, disk and node stay. A real machine takes a new lease without a reboot. The rest is
// the same. Its certificate, its Kubernetes node and the client URL of its etcd member change with their next
// start, which here is the same boot. The peer URL changes as soon as the member is healthy (Talos 1.13,
// etcd.AdvertisedPeerController).
func (m *Machine) Move(addr netip.Addr) error {
	addr, err := m.sim.addrs.Take(addr)
	if err != nil {
		return fmt.Errorf("move %s: %w", m.Name(), err)
	}

	m.World.Lock()
	on := m.power != nil
	m.World.Unlock()

	m.PowerOff()
	m.sim.addrs.Free(m.SetAddress(addr))

	if on {
		m.PowerOn()
	}

	return nil
}

// run boots the machine again and again until it is switched off. A container exits with its first boot
// (Talos 1.13: reboot(2) in a PID namespace ends its init).
func (m *Machine) run(ctx context.Context, p *power) {
	for {
		if m.system().BootHangs {
			m.World.Logf("%s: hangs before META is read", m.Name())
			<-ctx.Done()

			return
		}

		b, err := newBoot(m, p)
		if err != nil {
			m.World.Logf("%s: boot: %v", m.Name(), err)

			return
		}

		end := b.run(ctx)
		m.exited(end, ctx.Err() != nil)

		if end == machined.PoweredOff || m.Platform == machined.Container {
			return
		}

		m.World.Lock()
		dead, hang := m.Disk.Dead, m.hang
		m.World.Unlock()

		if dead || hang {
			m.World.Logf("%s: does not come back", m.Name())
			<-ctx.Done()

			return
		}

		if timing.Pause(ctx, m.Delays.Reboot) != nil {
			return
		}
	}
}

// CrashOnJoin cuts the power of the machine once, at the moment when its etcd member was
// added and etcd has not been started: the member stays in the list without a name, and
// nothing that machined does removes it (Talos 1.13, services/etcd.go addMember).
func (m *Machine) CrashOnJoin() {
	m.World.Update(func() { m.crashOnJoin = true })
}

func (m *Machine) takeCrashOnJoin() bool {
	m.World.Lock()
	defer m.World.Unlock()

	crash := m.crashOnJoin
	m.crashOnJoin = false

	return crash
}
