package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Upgrade installs Talos from an image on a member, after it compared the hardware UUID on a new connection, and
// reboots it. Disruptive. It returns when the machine went down. Only an observation shows whether the machine
// came back with the new version, because Talos rolls back when the new one does not start.
//
// Since Talos 1.13 pulling, installing and rebooting are separate calls, and a refusal of the installer is known
// before the reboot. All of it is safe to repeat, also after a run that was killed between installing and
// rebooting. Older versions have one call that first pulls and then answers. It keeps Talos's own check of etcd,
// and a refusal of the installer shows only after the reboot, in the version.
//
// Permanent are ErrRejected with the installer's last words, ErrGone (no such image), ErrUnsupported (a container,
// a machine that runs without being installed) and ErrNotAuthorized. ErrInProgress is another upgrade that runs.
// ErrQuorum is an etcd that would not survive, or a machine whose last upgrade has not proved itself yet
// (bootProved). Timeouts.Upgrade bounds it.
//
// Upgrade calls confirm between installation and reboot, for changes while the installer ran. Its error keeps the
// machine up, with the new Talos installed for its next boot.
func (m *Machine) Upgrade(ctx context.Context, image, uuid string, confirm func(context.Context) error) error {
	return doing(m.upgrade(ctx, image, usableUUID(uuid), confirm), "upgrade %s with %s", m.address, image)
}

func (m *Machine) upgrade(ctx context.Context, image, uuid string, confirm func(context.Context) error) error {
	s, begun, err := m.interrupting(ctx, uuid, step.StageUpgrading)
	if err != nil || begun {
		return err
	}

	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	if version.GetPlatform().GetMode() == containerMode {
		return wait.Permanent(fmt.Errorf("%w: the image of a container sets its Talos version", ErrUnsupported))
	}

	if err := m.settle(ctx, m.bootProved(s)); err != nil {
		return err
	}

	stepwise, err := upgradesInSteps(version)

	switch {
	case err != nil:
		return err
	case !stepwise:
		return m.upgradeAtOnce(ctx, s, image)
	}

	if err := m.install(ctx, s, image, pullsOf(version)); err != nil {
		return err
	}

	if err := confirm(ctx); err != nil {
		return err
	}

	return m.reboot(ctx, uuid)
}

// install runs the installer of an image to its end. The image is pulled again, which
// costs nothing when it is there, because it may have been removed since.
func (m *Machine) install(ctx context.Context, s *session, image string, attempts int) error {
	limit := m.fleet.options.Timeouts.Upgrade

	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: installation timed out after "+
		"%s", ErrUnreachable, limit))
	defer cancel()

	name, err := m.pull(ctx, s, imageStore(), image, attempts)
	if err != nil {
		return err
	}

	stream, err := s.lifecycle.Upgrade(ctx, &machineapi.LifecycleServiceUpgradeRequest{
		Containerd: imageStore(), Source: &machineapi.InstallArtifactsSource{ImageName: name},
	})
	if err != nil {
		return s.installFailed(err)
	}

	var output string

	for {
		answer, err := stream.Recv()

		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: the installer ended without an exit code", ErrUnreachable)
		case err != nil:
			return s.installFailed(err)
		}

		switch progress := answer.GetProgress().GetResponse().(type) {
		case *machineapi.LifecycleServiceInstallProgress_Message:
			// Pieces of output, not lines (Talos 1.13, lifecycle/container.go/streamOutput).
			output = tail(output + progress.Message)
		case *machineapi.LifecycleServiceInstallProgress_ExitCode:
			if progress.ExitCode != 0 {
				return wait.Permanent(fmt.Errorf("%w: the installer ended with exit code %d%s",
					ErrRejected, progress.ExitCode, m.lastWords(ctx, s, output)))
			}

			return nil
		}
	}
}

// tail keeps the end of an output, in bytes.
func tail(output string) string {
	const kept = 4 << 10

	return output[max(0, len(output)-kept):]
}

// lastWords are the last lines of an installer's output, without what is secret in the
// machine's configuration, which the installer is given. Without that nothing is shown.
func (m *Machine) lastWords(ctx context.Context, s *session, output string) string {
	const most = 8

	config, err := bounded(ctx, m, s.activeConfig)
	if err != nil {
		return ", and its output cannot be shown: " + err.Error()
	}

	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(output, "")), "\n")
	lines = lines[max(0, len(lines)-most):]

	if text := redactText(strings.Join(lines, "\n"), config); text != "" {
		return ":\n" + text
	}

	return " and no output"
}

// installing is how Talos says that another call installs right now. The other two
// refusals with this code are permanent: a mode without disks, and a machine that was
// never installed. Only the text distinguishes them (Talos 1.13, lifecycle.go/Upgrade).
const installing = "another installation/upgrade is already in progress"

func (s *session) installFailed(err error) error {
	switch code := status.Code(err); {
	case code == codes.FailedPrecondition && !strings.Contains(status.Convert(err).Message(), installing):
		return wait.Permanent(fmt.Errorf("%w: %w", ErrUnsupported, plain(err)))
	case code == codes.Internal && s.alive():
		// No system disk, or an image that is there and has no installer in it.
		return wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, plain(err)))
	default:
		return final(s.failed(err))
	}
}

// upgradeAtOnce is the upgrade before Talos 1.13.
func (m *Machine) upgradeAtOnce(ctx context.Context, s *session, image string) error {
	boot, err := bounded(ctx, m, s.bootID)
	if err != nil {
		return err
	}

	if err := m.sendUpgrade(ctx, s, image); err != nil && !s.ambiguous(err) {
		return err
	}

	return m.settle(ctx, m.leftIdle(boot))
}

func (m *Machine) sendUpgrade(ctx context.Context, s *session, image string) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Upgrade)
	defer cancel()

	// Neither force nor preserve: both do nothing but skip the check of etcd
	// (Talos 1.10 to 1.13, MachineService.Upgrade).
	_, err := s.machine.Upgrade(ctx, &machineapi.UpgradeRequest{Image: image}) //nolint:staticcheck // the only one before Talos 1.13

	return s.upgradeRefused(err)
}

// upgradeRefused tells the refusals of an upgrade before Talos 1.13 apart. All but one
// come as code Unknown, so that only their texts do (v1alpha1_server.go/Upgrade and
// install/pull.go).
func (s *session) upgradeRefused(err error) error {
	text := status.Convert(err).Message()

	switch {
	case err == nil:
		return nil
	case status.Code(err) == codes.FailedPrecondition:
		// A mode without disks, or Talos that runs without being installed.
		return wait.Permanent(fmt.Errorf("%w: %w", ErrUnsupported, plain(err)))
	case status.Code(err) != codes.Unknown:
		return final(s.failed(err))
	case strings.HasPrefix(text, "error validating etcd for upgrade"):
		return fmt.Errorf("%w: %w", ErrQuorum, plain(err))
	case strings.HasPrefix(text, "failed to acquire upgrade mutex"):
		return fmt.Errorf("%w: %w", ErrInProgress, plain(err))
	case !strings.HasPrefix(text, "error validating installer image"):
		return final(s.failed(err))
	case strings.HasSuffix(text, ": not found"):
		// containerd's own word for an image that the registry does not have.
		return wait.Permanent(fmt.Errorf("%w: %w", ErrGone, plain(err)))
	case strings.HasSuffix(text, "assuming invalid installer"), strings.Contains(text, `exec: "/bin/installer"`):
		return wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, plain(err)))
	default:
		return final(s.failed(err))
	}
}
