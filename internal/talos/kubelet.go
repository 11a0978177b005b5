package talos

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// kubeletServiceID is the service that runs the kubelet (Talos 1.13, services/kubelet.go/ID).
const kubeletServiceID = "kubelet"

// AwaitKubelet waits until a member's kubelet runs an image, the full reference that its configuration has. It
// waits until Talos wants that image, has started the kubelet since it last changed what it wants, and found it
// healthy. That holds for every image, also one of the same version, and for every client and time that set it. If
// another image replaces it meanwhile, the wait fails.
//
// Timeouts.Kubelet bounds the wait; the error says what is missing, and the last that Talos reports about the
// service. Safe to repeat; it changes nothing.
func (m *Machine) AwaitKubelet(ctx context.Context, image string) error {
	err := m.within(ctx, m.fleet.options.Timeouts.Kubelet, func(ctx context.Context) error {
		return m.readMember(ctx, func(ctx context.Context, s *session) error { return m.kubeletRuns(ctx, s, image) })
	})

	switch {
	case err == nil:
		return nil
	case wait.IsPermanent(err) || errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("wait until the kubelet of %s runs %s: %w", m.address, image, err)
	default:
		return fmt.Errorf("wait until the kubelet of %s runs %s: %w; %s", m.address, image, err, m.kubeletNews(ctx))
	}
}

// kubeletRuns returns nil once the kubelet runs what Talos wants, and that is the image.
//
// Talos restarts the kubelet whenever its KubeletSpec changes (Talos 1.13, k8s/kubelet_service.go/Run). The
// Service exists only while the kubelet runs: every other state destroys it, so each start creates it (Talos 1.13,
// v1alpha1/service.go/Run). So a Service that was created after the last change runs that change. One beside a
// KubeletSpec that never changed in this boot does, too, even if the clock was wrong before: the kubelet does not
// start earlier (Talos 1.13, services/kubelet.go/Condition). Both times are the machine's own.
func (m *Machine) kubeletRuns(ctx context.Context, s *session, image string) error {
	spec, err := bounded(ctx, m, func(ctx context.Context) (*k8s.KubeletSpec, error) {
		return get[*k8s.KubeletSpec](ctx, s, k8s.NamespaceName, k8s.KubeletSpecType, k8s.KubeletID)
	})
	if err != nil {
		return err
	}

	if wanted := spec.TypedSpec().Image; wanted != image {
		return fmt.Errorf("%w: Talos is still configured with %s", ErrInProgress, wanted)
	}

	service, err := bounded(ctx, m, func(ctx context.Context) (*v1alpha1.Service, error) {
		return serviceIn(ctx, s, kubeletServiceID)
	})

	if err != nil {
		return notRunning(err)
	}

	changed := spec.Metadata().Version().Value() > 1
	if changed && !service.Metadata().Created().After(spec.Metadata().Updated()) {
		return fmt.Errorf("%w: Talos has not restarted the service yet", ErrInProgress)
	}

	return works(service, kubeletServiceID)
}

// kubeletNews is Talos's last message about the kubelet's service, or the error of reading it. It has its own
// timeout, since ctx may have ended.
func (m *Machine) kubeletNews(ctx context.Context) string {
	ctx, cancel := m.callContext(context.WithoutCancel(ctx))
	defer cancel()

	var state string

	err := m.read(ctx, func(ctx context.Context, s *session) error {
		service, err := s.service(ctx, kubeletServiceID)
		if err != nil {
			return err
		}

		state = "Talos has no kubelet service"

		if events := service.GetEvents().GetEvents(); len(events) > 0 {
			last := events[len(events)-1]
			state = fmt.Sprintf("the kubelet service is %s: %s", last.GetState(), last.GetMsg())
		}

		return nil
	})
	if err != nil {
		return fmt.Sprintf("the state of the kubelet service is unknown: %s", err)
	}

	return state
}
