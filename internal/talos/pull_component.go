package talos

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// PullComponent makes a member pull the image of a component of Kubernetes into the component's image store, so
// that its upgrade does not wait for the download. It is safe to repeat: an existing image is not pulled again.
// The image may be removed before its use: Talos removes an unused one from the store of the kubelet after an hour
// (Talos 1.13, ImageGCController), and the kubelet removes one of pods when the disk is full.
//
// For kube-proxy it does nothing, as talosctl: its pods run on every node, whose kubelets pull it when the
// manifests change. It also does nothing on a Talos without such a call.
//
// An image that the registry does not have is a permanent ErrGone; ErrRejected, ErrUnsupported (no component that
// a machine runs) and ErrNotAuthorized are permanent too. Bounded by Timeouts.Pull.
func (m *Machine) PullComponent(ctx context.Context, component kubenames.Component, image string) error {
	if component == kubenames.KubeProxy {
		return nil
	}

	return doing(m.pullComponent(ctx, component, image), "pull image %s of %s on %s", image, component, m.address)
}

func (m *Machine) pullComponent(ctx context.Context, component kubenames.Component, image string) error {
	store, err := componentStore(component)
	if err != nil {
		return err
	}

	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	hasService, err := upgradesInSteps(version)
	if err != nil {
		return err
	}

	if hasService {
		_, err = m.pull(ctx, s, store, image, pullsOf(version))
	} else {
		err = m.pullAtOnce(ctx, s, store.GetNamespace(), image)
	}

	// An early pull only saves time, so a machine without the call skips it (Talos 1.13,
	// talos_managed.go/prePullImages).
	if errors.Is(err, ErrUnsupported) {
		return nil
	}

	return err
}

// componentStore is the image store of a component, in the containerd on the disk. Talos runs the kubelet from its
// namespace "system" (Talos 1.13, services/kubelet.go/PreFunc), and the kubelet runs static pods by CRI from its
// namespace "k8s.io", like all others.
func componentStore(component kubenames.Component) (*common.ContainerdInstance, error) {
	switch {
	case component == kubenames.Kubelet:
		return imageStore(), nil
	case component.StaticPod():
		return &common.ContainerdInstance{Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_CRI},
			nil
	default:
		return nil, wait.Permanent(fmt.Errorf("%w: machines do not run %q", ErrUnsupported, component))
	}
}

// pullAtOnce is the pull before Talos 1.13: one call that answers at the end. It knows no
// other containerd than the one on the disk (Talos 1.12, v1alpha1_images.go/ImagePull).
func (m *Machine) pullAtOnce(
	ctx context.Context, s *session, namespace common.ContainerdNamespace, image string,
) error {
	ctx, cancel := m.pullContext(ctx)
	defer cancel()

	_, err := s.machine.ImagePull(ctx, &machineapi.ImagePullRequest{ //nolint:staticcheck // the only one before Talos 1.13
		Namespace: namespace, Reference: image,
	})
	if err != nil {
		return s.pullFailed(image, err)
	}

	return nil
}
