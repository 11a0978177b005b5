package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"

	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// errInstaller is the installer exiting with an error.
var errInstaller = errors.New("exit code 1")

// errNotInstaller is an image without an installer in it.
var errNotInstaller = errors.New(`exec: "/bin/installer": stat /bin/installer: no such file or directory`)

// pullInstaller pulls an installer as the machine itself does, into the containerd
// instance in memory, and returns its content key.
func (b *boot) pullInstaller(ctx context.Context, reference string) (string, error) {
	pinned, err := b.images.Pull(ctx, images.InMemorySpace, reference, func(int64, int64) {})
	if err != nil {
		return "", err
	}

	img, ok := b.images.Find(images.InMemorySpace, pinned)
	if !ok {
		return "", fmt.Errorf("image %q: %w", pinned, images.ErrNotFound)
	}

	return img.Key, nil
}

// runInstaller is the installer container of an upgrade. It tells what the container
// prints and returns its exit code; an error means that the container could not run.
// The running system stays: what is installed becomes the entry of the next boot.
func (b *boot) runInstaller(
	ctx context.Context, key string, printf func(format string, args ...any),
) (exitCode int32, err error) {
	next, ok := b.sim.registries.Installs(key)
	if !ok {
		return 0, fmt.Errorf("failed to start task: %w", errNotInstaller)
	}

	printf("running pre-flight checks")
	printf("host Talos version: %s", b.System.Version)

	if err := upgradeable(b.System.Version, next.Version); err != nil {
		printf("Error: pre-flight checks failed: %v", err)

		return 1, nil
	}

	printf("all pre-flight checks successful")

	if err := timing.Pause(ctx, b.m.Delays.Upgrade); err != nil {
		return 0, fmt.Errorf("task exited with error: %w", err)
	}

	if b.sim.registries.Content(key).InstallFails {
		printf("Error: failed to install bootloader: no space left on device")

		return 1, nil
	}

	b.World.Update(func() { b.m.Disk.Upgrade(b.System, next) })
	printf("installation of %s complete", next.Version)

	return 0, nil
}

// newestKnown is the newest minor release whose rules the machinery has.
const newestKnown = 14

// upgradeable is the check that an installer makes (Talos 1.13, installer/pkg/install,
// preflight.go). Installers newer than the machinery bring rules of their own, which
// have followed the same pattern since 1.10: from two minor releases below to one above.
func upgradeable(host, target string) error {
	t, err := semver.ParseTolerant(target)
	if err != nil {
		return fmt.Errorf("error parsing installer Talos version: %w", err)
	}

	h, err := semver.ParseTolerant(host)
	if err != nil {
		return fmt.Errorf("error parsing host Talos version: %w", err)
	}

	if t.Major == 1 && t.Minor > newestKnown {
		switch {
		case h.Major == 1 && h.Minor+2 < t.Minor:
			return fmt.Errorf("host version %s is too old to upgrade to Talos %s", h, t)
		case h.Major > 1 || h.Minor >= t.Minor+2:
			return fmt.Errorf("host version %s is too new to downgrade to Talos %s", h, t)
		default:
			return nil
		}
	}

	to, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: target})
	if err != nil {
		return fmt.Errorf("error parsing installer Talos version: %w", err)
	}

	from, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: host})
	if err != nil {
		return fmt.Errorf("error parsing host Talos version: %w", err)
	}

	return to.UpgradeableFrom(from)
}

// installStaged carries a staged upgrade out, pulling its image once more.
func (b *boot) installStaged(ctx context.Context) error {
	key, err := b.pullInstaller(ctx, b.staged)
	if err != nil {
		return err
	}

	return b.upgradeVia(ctx, key)
}

// upgradeVia runs an installer as machined itself does, to which an exit code is an error.
func (b *boot) upgradeVia(ctx context.Context, key string) error {
	code, err := b.runInstaller(ctx, key, func(format string, args ...any) {
		b.World.Logf("%s: installer: "+format, append([]any{b.m.Name()}, args...)...)
	})

	switch {
	case err != nil:
		return err
	case code != 0:
		return errInstaller
	default:
		return nil
	}
}

// Panic lets machined fail: the machine reboots, into the previous boot entry if the
// current one was never running and ready, else into the same one. It does nothing
// while the machine is off.
func (m *Machine) Panic() {
	if b := m.current(); b != nil {
		b.Fail(errors.New("fatal controller runtime error: simulated panic"))
	}
}
