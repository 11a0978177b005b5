package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block/blockhelpers"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// install writes Talos to the disk of a metal machine that has none, or carries out a
// staged upgrade, and reboots. Everywhere else the sequence has no phases.
func (b *boot) install(r *machined.SequenceRun) error {
	task := b.installConfigured

	switch {
	case b.installsUnattended():
		return nil
	case b.staged != "":
		task = b.installStaged
	case b.m.Installed():
		return nil
	}

	if err := r.Phases("env", "setUserEnvVars"); err != nil {
		return err
	}

	if err := r.Phase("install", "install", task); err != nil {
		return err
	}

	err := r.Phases(
		"meta", "reloadMeta", "saveMeta", "flushMeta", "volumeFinalize", "teardownLifecycle",
		"stopEverything", "stopAllServices", "kexec", "kexecPrepare",
	)
	if err != nil {
		return err
	}

	return r.Reboot()
}

// installConfigured runs the installer of the configuration.
func (b *boot) installConfigured(ctx context.Context) error {
	cfg := b.PersistedConfig()
	if cfg == nil {
		return errors.New("no configuration to install")
	}

	disk, err := b.installDisk(ctx, cfg)
	if err != nil {
		return err
	}

	return b.installFrom(ctx, disk, cfg.Machine().Install().Image())
}

// installDisk finds the disk of an installation (Talos 1.13, v1alpha1_sequencer_tasks.go, Install).
func (b *boot) installDisk(ctx context.Context, cfg config.Provider) (string, error) {
	match, err := cfg.Machine().Install().DiskMatchExpression()
	if err != nil {
		return "", fmt.Errorf("failed to get disk match expression: %w", err)
	}

	if match == nil {
		return b.m.FindDisk(cfg.Machine().Install().Disk())
	}

	disks, err := blockhelpers.MatchDisks(ctx, b.Resources, match)
	if err != nil {
		return "", err
	}

	if len(disks) == 0 {
		return "", fmt.Errorf("no disks matched the expression: %s", match)
	}

	return disks[0].TypedSpec().DevPath, nil
}

// ownVolumes are the volumes with separate partitions in a configuration.
func (b *boot) ownVolumes(cfg config.Provider) map[string]bool {
	if !b.Since(1, 14) {
		return nil
	}

	own := map[string]bool{}

	for _, document := range cfg.Documents() {
		if volume, ok := document.(*block.VolumeConfigV1Alpha1); ok && slices.Contains(machined.OwnVolumes, volume.Name()) {
			own[volume.Name()] = block.ProvisioningRequested(volume.ProvisioningSpec)
		}
	}

	return own
}

// bootServices is the boot sequence: it ends when every service is up, which on a
// control-plane machine is after it joined etcd or was asked to bootstrap it.
func (b *boot) bootServices(r *machined.SequenceRun) error {
	phases := []string{
		"memorySizeCheck", "memorySizeCheck", "diskSizeCheck", "diskSizeCheck",
		"env", "setUserEnvVars", "dbus", "startDBus",
	}
	if b.m.Platform == machined.Container {
		phases = append(phases, "sharedFilesystems", "setupSharedFilesystems")
	}

	if err := r.Phases(phases...); err != nil {
		return err
	}

	if err := r.Phase("ephemeral", "mountEphemeralPartition", b.mountEphemeral); err != nil {
		return err
	}

	if err := r.Phases("userSetup", "writeUserFiles"); err != nil {
		return err
	}

	return r.Phase("startEverything", "startAllServices", b.startServices)
}

// mountEphemeral is where the boot of a system ends that SetImage declared broken, and where the boot of a machine
// with a broken EPHEMERAL waits (Talos 1.14, v1alpha1_sequencer_tasks.go, MountEphemeralPartition).
func (b *boot) mountEphemeral(ctx context.Context) error {
	if !b.m.Installed() {
		return b.awaitInstallation(ctx)
	}

	if b.m.EphemeralBroken() {
		<-ctx.Done()

		return ctx.Err()
	}

	if !b.System.BootFails {
		b.Ephemeral.Store(true)

		return nil
	}

	if err := timing.Pause(ctx, b.m.Delays.Boot); err != nil {
		return err
	}

	return errors.New("volume EPHEMERAL failed: simulated failure of this boot entry")
}

func (b *boot) startServices(ctx context.Context) error {
	b.NameNode()
	b.controllers.Render()
	b.Spawn(b.controllers.Follow)
	b.Services.Set("kubelet", machined.ServiceStarting, "Starting service")

	if b.ControlPlane() {
		ca, err := certs.LoadAuthority(b.OSAuthority())
		if err != nil {
			return fmt.Errorf("load Talos CA: %w", err)
		}

		b.Services.Set("trustd", machined.ServiceStarting, "Starting service")
		b.Spawn(func(ctx context.Context) { b.runTrustd(ctx, ca) })
		b.Spawn(b.kubelet.RunStaticPods)
		b.Spawn(b.holdEndpoint)
		b.Spawn(b.controllers.ApplyManifests)

		if b.runsEtcd() {
			b.etcd.Start(nil)
		}
	}

	if err := timing.Pause(ctx, b.m.Delays.Boot); err != nil {
		return err
	}

	if err := b.m.Delays.Boots.Pass(ctx); err != nil {
		return err
	}

	b.Services.Start("cri")
	b.Spawn(b.kubelet.Serve)

	// apid is one of the services that the boot waits for. A worker's would be, too, but
	// its wait for a certificate is that for its node already.
	if b.ControlPlane() {
		select {
		case <-b.api.OwnServed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	return b.Services.AwaitUp(ctx)
}

// runsEtcd is false for a control plane whose configuration has no authority of etcd. Talos 1.14 starts none there
// (v1alpha1_sequencer_tasks.go, StartAllServices); up to 1.13 it fails.
func (b *boot) runsEtcd() bool {
	return !b.Since(1, 14) || b.Config().Cluster().Etcd().CA() != nil
}

// stopSequence is the orderly stop that reboot, reset and shutdown share.
func (b *boot) stopSequence(r *machined.SequenceRun, kexec bool) error {
	if b.m.Platform == machined.Container {
		return r.Phase("stopEverything", "stopAllServices", b.stopServices)
	}

	if err := r.Phase("stopServices", "stopServicesForUpgrade", b.stopServices); err != nil {
		return err
	}

	phases := []string{
		"umount", "unmountPodMounts", "unmountBind", "unmountSystemDiskBindMounts",
		"unmountSystem", "unmountEphemeralPartition", "volumeFinalize", "teardownLifecycle",
	}
	last := []string{"stopEverything", "stopAllServices"}

	switch {
	case kexec && b.Since(1, 14): // once nothing needs memory any more (v1alpha1_sequencer.go, stopAllPhaselist)
		last = append(last, "kexec", "kexecPrepare")
	case kexec:
		phases = append(phases, "kexec", "kexecPrepare")
	}

	return r.Phases(append(phases, last...)...)
}

// stopServices stops what runs on the machine; the API stays up until the boot ends.
func (b *boot) stopServices(ctx context.Context) error {
	b.etcd.Stop()
	b.Services.Stop("kubelet", "etcd", "trustd", "cri")

	return timing.Pause(ctx, b.m.Delays.Shutdown)
}

// rebootSequence is what the Reboot RPC and a configuration that needs a reboot run.
func (b *boot) rebootSequence(force bool) func(*machined.SequenceRun) error {
	return func(r *machined.SequenceRun) error {
		if !force {
			if err := r.Phases("cleanup", "stopAllPods", "dbus", "stopDBus"); err != nil {
				return err
			}

			if err := b.stopSequence(r, true); err != nil {
				return err
			}
		}

		return r.Reboot()
	}
}

// shutdownSequence is the sequence of the Shutdown RPC.
func (b *boot) shutdownSequence(force bool) func(*machined.SequenceRun) error {
	return func(r *machined.SequenceRun) error {
		b.kubelet.BeginCordon(r.Ctx)

		if err := r.Phases("storeShutdown", "storeShutdownEmergency"); err != nil {
			return err
		}

		if !force && !b.Config().K8sNodeConfig().SkipNodeRegistration() {
			if err := r.Phase("drain", "cordonAndDrainNode", b.kubelet.CordonAndDrain); err != nil {
				return err
			}
		}

		if err := r.Phases("cleanup", "stopAllPods", "dbus", "stopDBus"); err != nil {
			return err
		}

		if err := b.stopSequence(r, false); err != nil {
			return err
		}

		return r.Shutdown()
	}
}
