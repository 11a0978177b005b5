package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// RestartKubelet restarts a member's kubelet, which registers its node when it starts and at no other time. The
// containers of pods go on. Safe to repeat.
func (m *Machine) RestartKubelet(ctx context.Context) error {
	if _, err := m.restartService(ctx, kubeletServiceID); err != nil {
		return fmt.Errorf("restart %s of %s: %w", kubeletServiceID, m.address, err)
	}

	return nil
}

// What Talos says to a restart that it does not do, with code Unknown (Talos 1.13, system/system.go/APIRestart).
var noRestart = []string{"doesn't support restart operation via API", "not defined"}

// RestartService restarts a service of a member by its id, and returns once it runs again, and is healthy where Talos
// looks at that. Talos lets the kubelet and the services of extensions be restarted, and no others (Talos 1.13,
// services/kubelet.go and extension.go, APIRestartAllowed); another one is a permanent ErrRejected. Safe to repeat.
func (m *Machine) RestartService(ctx context.Context, service string) error {
	before, err := m.restartService(ctx, service)
	if err == nil {
		err = m.settle(ctx, func(ctx context.Context) error { return m.runsAnew(ctx, service, before) })
	}

	if err != nil {
		return fmt.Errorf("restart %s of %s: %w", service, m.address, err)
	}

	return nil
}

// restartService says when the service had started that it restarts; zero where it did not run.
func (m *Machine) restartService(ctx context.Context, service string) (before time.Time, err error) {
	s, err := m.changing(ctx, cluster.Member, m.knownUUID())
	if err != nil {
		return before, err
	}

	started, err := bounded(ctx, m, func(ctx context.Context) (*v1alpha1.Service, error) {
		return serviceIn(ctx, s, service)
	})

	switch {
	case err == nil:
		before = started.Metadata().Created()
	case !errors.Is(err, ErrGone):
		return before, err
	}

	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err = s.machine.ServiceRestart(ctx, &machineapi.ServiceRestartRequest{Id: service})

	for _, refusal := range noRestart {
		if err != nil && strings.Contains(err.Error(), refusal) {
			return before, wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, plain(err)))
		}
	}

	return before, s.failed(err)
}

// serviceIn is a service as Talos shows it while it runs, made anew with each start (Talos 1.13,
// v1alpha1/service.go/Run).
func serviceIn(ctx context.Context, s *session, id string) (*v1alpha1.Service, error) {
	return get[*v1alpha1.Service](ctx, s, v1alpha1.NamespaceName, v1alpha1.ServiceType, id)
}

// runsAnew is nil once a service was started after a time, and works.
func (m *Machine) runsAnew(ctx context.Context, id string, before time.Time) error {
	return m.read(ctx, func(ctx context.Context, s *session) error {
		if err := s.expect(cluster.Member); err != nil {
			return err
		}

		service, err := serviceIn(ctx, s, id)

		switch {
		case errors.Is(err, ErrGone):
			return fmt.Errorf("%w: it does not run", ErrInProgress)
		case err != nil:
			return err
		case service.Metadata().Created().Equal(before):
			return fmt.Errorf("%w: Talos has not restarted it yet", ErrInProgress)
		case !service.TypedSpec().Running, !service.TypedSpec().Healthy && (!service.TypedSpec().Unknown || checked(id)):
			return fmt.Errorf("%w: it runs and is not healthy", ErrInProgress)
		default:
			return nil
		}
	})
}

// checked is whether Talos looks at the health of a service that it lets be restarted: until it did, that is unknown,
// as it stays for those of extensions (Talos 1.13, services/kubelet.go/HealthFunc; extension.go has none).
func checked(id string) bool { return id == kubeletServiceID }
