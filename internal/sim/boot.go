package sim

import (
	"cmp"
	"context"
	"errors"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
	"github.com/talosop/terraform-provider-talosop/internal/sim/controllers"
	"github.com/talosop/terraform-provider-talosop/internal/sim/diagnostics"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcdservice"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kubelet"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// newBoot prepares a boot from the machine's disk.
func newBoot(m *Machine, p *power) (*boot, error) {
	b := &boot{m: m, sim: m.sim, power: p}

	m.World.Lock()
	sys, name, kernel := m.nextSystem(), m.opts.Hostname, m.opts.BootID
	m.Disk.TakeChoice()
	b.staged = m.Disk.TakeStaged()
	m.boots++
	m.World.Unlock()

	kernel = cmp.Or(kernel, m.sim.kernel)

	common, err := machined.NewBoot(m.sim.ctx, m.Hardware, machined.NewResources(m.sim.catalog), sys, name, kernel)
	if err != nil {
		return nil, err
	}

	b.Boot = common
	b.images = images.NewStore(m.World, m.sim.registries, &m.Disk.Images, m.Delays.Pull)
	b.etcd = etcdservice.New(b.Boot, host{b}, m.sim.backends.etcd, b.images)
	b.kubelet = kubelet.New(b.Boot, host{b}, b.images)
	b.controllers = controllers.New(b.Boot, host{b}, b.kubelet)
	b.diagnostics = diagnostics.New(b.Boot)
	b.api = apid.New(b.Boot, host{b}, m.sim.opts.Port, m.sim.calls, &m.sim.faults)
	b.Renew = b.api.Renew

	return b, nil
}

// run is one boot from power to the end of it.
func (b *boot) run(ctx context.Context) machined.Outcome {
	defer b.Begin(ctx)()

	if err := b.PublishHardware(); err != nil {
		b.World.Logf("%s: publish resources: %v", b.m.Name(), err)
	}

	b.World.Update(func() {
		b.m.boot, b.m.off = b, false
		b.SetOn(true)
	})

	b.Spawn(b.api.Serve)
	b.Spawn(b.startup)

	end := machined.PoweredOff
	select {
	case end = <-b.Ended:
	case <-b.Ctx.Done():
	}

	b.Close()
	b.leaveCluster()
	b.Work.Wait()
	b.World.Update(func() {
		b.m.boot, b.m.off = nil, end == machined.PoweredOff
		b.SetOn(false)
		b.power.ends = b.power.ends || end == machined.PoweredOff
	})

	if c := b.joined(); c != nil {
		c.reap()
	}

	return end
}

// startup runs the sequences of a boot in Talos's order: initialize (which waits in
// maintenance mode for a configuration), install, boot.
func (b *boot) startup(ctx context.Context) {
	err := b.Sequencer.Run(ctx, b.Boot, "initialize", "", false, b.initialize)
	if err == nil {
		err = b.Sequencer.Run(ctx, b.Boot, "install", "", false, b.install)
	}

	if err == nil {
		err = b.Sequencer.Run(ctx, b.Boot, "boot", "", false, b.bootServices)
	}

	if err != nil && !errors.Is(err, machined.ErrBootEnds) && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		b.Fail(err)
	}
}

// initialize brings the API up and returns when there is a complete configuration.
func (b *boot) initialize(r *machined.SequenceRun) error {
	early := []string{"udevd", "machined", "apid", "auditd", "syslogd", "containerd"}

	if b.m.Platform == machined.Container {
		if err := r.Phase("machined", "startMachined", func(context.Context) error {
			b.Services.Start("apid", "machined", "containerd")

			return nil
		}); err != nil {
			return err
		}

		return r.Phase("config", "loadConfig", b.loadConfig)
	}

	if err := r.Phases("systemRequirements", "enforceKSPPRequirements"); err != nil {
		return err
	}

	if err := r.Phase("earlyServices", "startMachined", func(context.Context) error {
		b.Services.Start(early...)

		return nil
	}); err != nil {
		return err
	}

	if err := r.Phases("usb", "waitForUSB", "meta", "reloadMeta", "dashboard", "startDashboard"); err != nil {
		return err
	}

	return r.Phase("config", "loadConfig", b.loadConfig)
}

// loadConfig returns when the machine has a complete configuration, waiting for one
// in maintenance mode if STATE holds none.
func (b *boot) loadConfig(ctx context.Context) error {
	if b.InMaintenance() {
		select {
		case <-b.api.APIServed:
		case <-ctx.Done():
			return ctx.Err()
		}

		b.PublishTask("runningMaintenance", true, "")

		select {
		case <-b.Configured:
		case <-ctx.Done():
			return ctx.Err()
		}

		b.PublishTask("runningMaintenance", false, "")
	}

	return b.joinCluster()
}
