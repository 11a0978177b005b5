package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block/blockhelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// awaitInstallation is where a boot of Talos 1.14 waits on a machine that is not installed, and whose
// configuration has no install section. It waits until its document for an unattended installation is carried out,
// or a client installs it with a call. The stage stays booting (Talos 1.14, v1alpha1_sequencer.go, Install and
// Boot).
func (b *boot) awaitInstallation(ctx context.Context) error {
	for !b.m.Installed() {
		changed := b.Changed.Next()

		again, err := b.installUnattended(ctx)
		if err != nil {
			return err
		}

		if b.m.Installed() {
			break
		}

		retry, stop := context.WithCancel(ctx)
		if again > 0 {
			retry, stop = context.WithTimeout(ctx, again)
		}

		b.awaitInstalled(retry, changed)
		stop()

		if ctx.Err() != nil {
			return ctx.Err()
		}
	}

	return b.afterInstallation(ctx)
}

// awaitInstalled returns when the machine is installed, another configuration is there, or the context ends.
func (b *boot) awaitInstalled(ctx context.Context, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	b.Spawn(func(context.Context) {
		select {
		case <-changed:
		case <-ctx.Done():
		}

		cancel()
	})

	// What ended the wait is looked at by who waits.
	_ = b.World.Await(ctx, func() bool { return b.m.Disk.Installed })
}

// installRetry is how long the controller waits after an installer that failed; every retry of a real one is longer
// than the one before.
const installRetry = 50 * time.Millisecond

// installUnattended makes one attempt, as the controller does with each of its events (Talos 1.14,
// runtime/unattended_install.go). A positive duration asks for another one after it.
func (b *boot) installUnattended(ctx context.Context) (again time.Duration, err error) {
	doc := b.Config().UnattendedInstallConfig()
	if doc == nil {
		return 0, nil
	}

	match := doc.VolumeSelector()

	disks, err := blockhelpers.MatchDisks(ctx, b.Resources, &match)
	if err != nil {
		return 0, fmt.Errorf("failed to match install disk: %w", err)
	}

	if len(disks) == 0 {
		b.publishInstallation(doc, runtime.UnattendedInstallPhasePending, errors.New("no disk matched the selector"))

		return 0, nil
	}

	b.publishInstallation(doc, runtime.UnattendedInstallPhaseInstalling, nil)

	if err := b.installFrom(ctx, disks[0].TypedSpec().DevPath, doc.InstallerImage()); err != nil {
		b.publishInstallation(doc, runtime.UnattendedInstallPhaseFailed, err)

		return installRetry, ctx.Err()
	}

	return 0, nil
}

// afterInstallation reboots the machine where the document says so, and where it names an image and does not say.
func (b *boot) afterInstallation(ctx context.Context) error {
	doc := b.Config().UnattendedInstallConfig()
	if doc == nil {
		return nil
	}

	reboots := doc.InstallerImage() != ""
	if set := doc.RebootAfterInstall(); set != nil {
		reboots = *set
	}

	if !reboots {
		b.publishInstallation(doc, runtime.UnattendedInstallPhaseInstalled, nil)

		return nil
	}

	b.publishInstallation(doc, runtime.UnattendedInstallPhaseWaitingForReboot, nil)
	b.StartSequence("reboot", "", false, b.rebootSequence(false))

	<-ctx.Done() // the sequence takes the place of the boot's

	return ctx.Err()
}

func (b *boot) publishInstallation(
	doc config.UnattendedInstallConfig, phase runtime.UnattendedInstallPhase, problem error,
) {
	machined.Modify(b.Boot, runtime.NewUnattendedInstallStatus(), func(r *runtime.UnattendedInstallStatus) {
		*r.TypedSpec() = runtime.UnattendedInstallStatusSpec{Image: doc.InstallerImage(), Phase: phase}
		if problem != nil {
			r.TypedSpec().Error = problem.Error()
		}
	})
}

// installsUnattended is whether the install sequence has no phases, whatever is staged: Talos 1.14 runs the installer
// in a controller where the configuration has no install section (v1alpha1_sequencer.go, Install).
func (b *boot) installsUnattended() bool {
	main := b.Config().RawV1Alpha1()

	return b.Since(1, 14) && b.m.Platform == machined.Metal && main.MachineConfig != nil &&
		main.MachineConfig.MachineInstall == nil
}

// installFrom runs an installer on a disk and keeps the configuration on the disk. An image whose reference does not
// tell what is in it, and none at all, install what runs.
func (b *boot) installFrom(ctx context.Context, disk, reference string) error {
	cfg := b.PersistedConfig()
	if cfg == nil {
		return errors.New("no configuration to install")
	}

	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}

	sys := b.System

	if reference != "" {
		key, err := b.pullInstaller(ctx, reference)
		if err != nil {
			return err
		}

		if b.sim.registries.Content(key).InstallFails {
			return errInstaller
		}

		if known, ok := b.sim.registries.Installs(key); ok {
			sys = known
		}
	}

	if err := timing.Pause(ctx, b.m.Delays.Install); err != nil {
		return err
	}

	b.World.Update(func() {
		b.m.Disk.Installed, b.m.Disk.SystemDisk, b.m.Disk.Entry = true, disk, &sys
		b.m.Disk.Config, b.m.Disk.Own = data, b.ownVolumes(cfg)
	})

	return nil
}
