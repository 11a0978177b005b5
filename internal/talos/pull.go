package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// imageStore is where installer images are pulled to and run from: the containerd that
// keeps its images on the disk, in the namespace of Talos's own. It is what talosctl
// 1.13 uses (image.go/containerdInstance, namespace "system"). Images that nothing uses
// are removed from it after an hour or so.
func imageStore() *common.ContainerdInstance {
	return &common.ContainerdInstance{Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_SYSTEM}
}

// PullImage makes a member fetch an installer image ahead of an upgrade. It is safe to
// repeat: an image that is there is not fetched again. Before Talos 1.13 it does
// nothing, because an upgrade then takes its image from another store, in memory, that
// only the upgrade itself fills (install.PullAndValidateInstallerImage).
//
// An image that the registry does not have is a permanent ErrGone; ErrRejected,
// ErrUnsupported and ErrNotAuthorized are permanent too. Bounded by Timeouts.Pull.
func (m *Machine) PullImage(ctx context.Context, image string) error {
	return doing(m.pullImage(ctx, image), "pull image %s on %s", image, m.address)
}

func (m *Machine) pullImage(ctx context.Context, image string) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	if able, err := upgradesInSteps(version); err != nil || !able {
		return err
	}

	_, err = m.pull(ctx, s, imageStore(), image, pullsOf(version))

	return err
}

// pullAttempts is how often a registry is asked where Talos asks it once and tells at once that it did not answer; the
// pauses between double from pullPause.
const (
	pullAttempts = 4
	pullPause    = 500 * time.Millisecond
)

// pullsOf is how often a machine has to be asked: up to Talos 1.13 it tries again itself.
func pullsOf(version *machineapi.Version) int {
	if talosversion.Of(version.GetVersion().GetTag()).PullsOnce {
		return pullAttempts
	}

	return 1
}

// stepwise is the first Talos whose image is pulled, installed and booted by calls of
// their own (LifecycleService and ImageService).
var stepwise = semver.MustParse("1.13.0")

// upgradesInSteps reports whether a machine has the calls of Talos 1.13.
func upgradesInSteps(version *machineapi.Version) (bool, error) {
	tag := version.GetVersion().GetTag()

	parsed, err := semver.ParseTolerant(tag)
	if err != nil {
		return false, wait.Permanent(fmt.Errorf("%w: the machine reports the invalid Talos version "+
			"%q", ErrUnsupported, tag))
	}

	return parsed.GE(stepwise), nil
}

// pullContext bounds the download of one image.
func (m *Machine) pullContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := m.fleet.options.Timeouts.Pull

	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: the image pull timed out after "+
		"%s", ErrUnreachable, limit))
}

// pull fetches an image into a store and returns the name that it has there, which holds
// its digest. What the machine's registry does not answer is asked again, so many times in all.
func (m *Machine) pull(
	ctx context.Context, s *session, store *common.ContainerdInstance, image string, attempts int,
) (name string, err error) {
	ctx, cancel := m.pullContext(ctx)
	defer cancel()

	asked := wait.Backoff(ctx, pullPause, pullPause<<attempts, func(ctx context.Context) error {
		name, err = s.pull(ctx, store, image)
		attempts--

		// The caller handles a machine that does not answer, and an error that a retry cannot change.
		if err == nil || attempts <= 0 || wait.IsPermanent(err) || errors.Is(err, ErrUnreachable) {
			return nil
		}

		return err
	})
	if asked != nil {
		return "", asked
	}

	return name, err
}

func (s *session) pull(ctx context.Context, store *common.ContainerdInstance, image string) (string, error) {
	stream, err := s.images.Pull(ctx, &machineapi.ImageServicePullRequest{Containerd: store, ImageRef: image})
	if err != nil {
		return "", s.pullFailed(image, err)
	}

	name := ""

	for {
		answer, err := stream.Recv()

		switch {
		case errors.Is(err, io.EOF) && name != "":
			return name, nil
		case errors.Is(err, io.EOF):
			return "", fmt.Errorf("%w: the pull ended without an image name", ErrUnreachable)
		case err != nil:
			return "", s.pullFailed(image, err)
		}

		if pulled := answer.GetName(); pulled != "" {
			name = pulled
		}
	}
}

// MissingImageError says that a registry does not have an image. It is an [ErrGone].
type MissingImageError struct {
	Image string
	err   error
}

func (e *MissingImageError) Error() string { return "the registry has no image " + e.Image }
func (e *MissingImageError) Unwrap() error { return e.err }

// pullFailed is the error of the pull of an image.
func (s *session) pullFailed(image string, err error) error {
	err = s.failed(err)
	if errors.Is(err, ErrGone) {
		return wait.Permanent(&MissingImageError{image, err})
	}

	return final(err)
}
