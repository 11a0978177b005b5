package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// install writes Talos to the disk of a metal machine that has none, or carries out a
// staged upgrade, and reboots. Everywhere else the sequence has no phases.
func (b *boot) install(r *sequenceRun) error {
	task := b.installConfigured

	switch {
	case b.staged != "":
		task = b.installStaged
	case b.m.Installed():
		return nil
	}

	if err := r.phases("env", "setUserEnvVars"); err != nil {
		return err
	}

	if err := r.phase("install", "install", task); err != nil {
		return err
	}

	err := r.phases(
		"meta", "reloadMeta", "saveMeta", "flushMeta", "volumeFinalize", "teardownLifecycle",
		"stopEverything", "stopAllServices", "kexec", "kexecPrepare",
	)
	if err != nil {
		return err
	}

	return r.reboot()
}

// installConfigured runs the installer of the configuration and keeps the configuration
// on the disk. An image whose reference does not tell what is in it installs what runs.
func (b *boot) installConfigured(ctx context.Context) error {
	cfg := b.persistedConfig()
	if cfg == nil {
		return errors.New("no configuration to install")
	}

	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}

	sys := b.system

	if ref := cfg.Machine().Install().Image(); ref != "" {
		key, err := b.pullInstaller(ctx, ref)
		if err != nil {
			return err
		}

		if b.sim.registries.content(key).InstallFails {
			return errInstaller
		}

		if known, ok := b.sim.registries.installs(key); ok {
			sys = known
		}
	}

	if err := timing.Pause(ctx, b.m.delays.Install); err != nil {
		return err
	}

	b.sim.update(func() {
		b.m.disk.installed, b.m.disk.entry = true, &sys
		b.m.disk.config = data
	})

	return nil
}

// bootServices is the boot sequence: it ends when every service is up, which on a
// control-plane machine is after it joined etcd or was asked to bootstrap it.
func (b *boot) bootServices(r *sequenceRun) error {
	phases := []string{
		"memorySizeCheck", "memorySizeCheck", "diskSizeCheck", "diskSizeCheck",
		"env", "setUserEnvVars", "dbus", "startDBus",
	}
	if b.m.platform == Container {
		phases = append(phases, "sharedFilesystems", "setupSharedFilesystems")
	}

	if err := r.phases(phases...); err != nil {
		return err
	}

	if err := r.phase("ephemeral", "mountEphemeralPartition", b.mountEphemeral); err != nil {
		return err
	}

	if err := r.phases("userSetup", "writeUserFiles"); err != nil {
		return err
	}

	return r.phase("startEverything", "startAllServices", b.startServices)
}

// mountEphemeral is where the boot of a system ends that SetImage declared broken.
func (b *boot) mountEphemeral(ctx context.Context) error {
	if !b.system.bootFails {
		b.ephemeral.Store(true)

		return nil
	}

	if err := timing.Pause(ctx, b.m.delays.Boot); err != nil {
		return err
	}

	return errors.New("volume EPHEMERAL failed: simulated failure of this boot entry")
}

func (b *boot) startServices(ctx context.Context) error {
	b.nameNode()
	b.render()
	b.spawn(b.runControllers)
	b.services.set("kubelet", serviceStarting, "Starting service")

	if b.controlPlane() {
		ca, err := certs.LoadAuthority(b.osAuthority())
		if err != nil {
			return fmt.Errorf("load Talos CA: %w", err)
		}

		b.services.set("trustd", serviceStarting, "Starting service")
		b.spawn(func(ctx context.Context) { b.runTrustd(ctx, ca) })
		b.spawn(b.runStaticPods)
		b.spawn(b.holdEndpoint)
		b.spawn(b.applyManifests)
		b.etcd.start(b, nil)
	}

	if err := timing.Pause(ctx, b.m.delays.Boot); err != nil {
		return err
	}

	b.services.start("cri")
	b.spawn(b.runKubelet)

	// apid is one of the services that the boot waits for. A worker's would be, too, but
	// its wait for a certificate is that for its node already.
	if b.controlPlane() {
		select {
		case <-b.ownServed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	return b.services.awaitUp(ctx)
}

// stopSequence is the orderly stop that reboot, reset and shutdown share.
func (r *sequenceRun) stopSequence(kexec bool) error {
	b := r.b

	if b.m.platform == Container {
		return r.phase("stopEverything", "stopAllServices", b.stopServices)
	}

	if err := r.phase("stopServices", "stopServicesForUpgrade", b.stopServices); err != nil {
		return err
	}

	phases := []string{
		"umount", "unmountPodMounts", "unmountBind", "unmountSystemDiskBindMounts",
		"unmountSystem", "unmountEphemeralPartition", "volumeFinalize", "teardownLifecycle",
	}
	if kexec {
		phases = append(phases, "kexec", "kexecPrepare")
	}

	return r.phases(append(phases, "stopEverything", "stopAllServices")...)
}

// stopServices stops what runs on the machine; the API stays up until the boot ends.
func (b *boot) stopServices(ctx context.Context) error {
	b.etcd.stop()
	b.services.stop("kubelet", "etcd", "trustd", "cri")

	return timing.Pause(ctx, b.m.delays.Shutdown)
}

// reboot ends the boot from a sequence's last phase.
func (r *sequenceRun) reboot() error {
	return r.phase("reboot", "reboot", func(context.Context) error {
		r.b.end(rebooted)

		return errBootEnds
	})
}

// shutdown ends the boot and leaves the machine off.
func (r *sequenceRun) shutdown() error {
	return r.phase("shutdown", "shutdown", func(context.Context) error {
		r.b.end(poweredOff)

		return errBootEnds
	})
}

// rebootSequence is what the Reboot RPC and a configuration that needs a reboot run.
func (b *boot) rebootSequence(force bool) func(*sequenceRun) error {
	return func(r *sequenceRun) error {
		if !force {
			if err := r.phases("cleanup", "stopAllPods", "dbus", "stopDBus"); err != nil {
				return err
			}

			if err := r.stopSequence(true); err != nil {
				return err
			}
		}

		return r.reboot()
	}
}

// shutdownSequence is what the Shutdown RPC runs.
func (b *boot) shutdownSequence(force bool) func(*sequenceRun) error {
	return func(r *sequenceRun) error {
		b.beginCordon(r.ctx)

		if err := r.phases("storeShutdown", "storeShutdownEmergency"); err != nil {
			return err
		}

		if !force && !b.config().Machine().Kubelet().SkipNodeRegistration() {
			if err := r.phase("drain", "cordonAndDrainNode", b.cordonAndDrain); err != nil {
				return err
			}
		}

		if err := r.phases("cleanup", "stopAllPods", "dbus", "stopDBus"); err != nil {
			return err
		}

		if err := r.stopSequence(false); err != nil {
			return err
		}

		return r.shutdown()
	}
}

// startSequence runs a sequence that an RPC asked for. The RPC does not wait for it,
// and whether it was allowed to start shows only in the events.
func (b *boot) startSequence(name, actor string, force bool, body func(*sequenceRun) error) {
	b.spawn(func(ctx context.Context) {
		err := b.sequencer.run(ctx, b, name, actor, force, body)

		switch {
		case err == nil, errors.Is(err, errBootEnds), errors.Is(err, context.Canceled):
		case errors.Is(err, errLocked):
			b.sim.logf("%s: %s refused: another sequence runs", b.m.name, name)
		default:
			b.fail(err)
		}
	})
}
