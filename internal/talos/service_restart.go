package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// RestartKubelet restarts a member's kubelet, which registers its node when it starts and at no other time. The
// containers of pods continue. Safe to repeat.
func (m *Machine) RestartKubelet(ctx context.Context) error {
	return m.restartService(ctx, kubeletServiceID)
}

// What Talos says to a restart that it does not do, with code Unknown (Talos 1.13, system/system.go/APIRestart).
var noRestart = []string{"doesn't support restart operation via API", "not defined"}

// RestartService restarts a service of a member by its id, and returns once it runs again, and is healthy where Talos
// looks at that. Talos lets the kubelet and the services of extensions be restarted, and no others (Talos 1.13,
// services/kubelet.go and extension.go, APIRestartAllowed); another one is a permanent ErrRejected. Safe to repeat.
func (m *Machine) RestartService(ctx context.Context, service string) error {
	before, err := m.startOf(ctx, service)
	if err != nil {
		return fmt.Errorf("restart %s of %s: %w", service, m.address, err)
	}

	if err := m.restartService(ctx, service); err != nil {
		return err
	}

	return doing(m.settle(ctx, func(ctx context.Context) error { return m.restartedSince(ctx, service, before) }),
		"restart %s of %s", service, m.address)
}

func (m *Machine) restartService(ctx context.Context, service string) error {
	return doing(m.sendRestart(ctx, service), "restart %s of %s", service, m.address)
}

func (m *Machine) sendRestart(ctx context.Context, service string) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err = s.machine.ServiceRestart(ctx, &machineapi.ServiceRestartRequest{Id: service})

	for _, refusal := range noRestart {
		if err != nil && strings.Contains(err.Error(), refusal) {
			return wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, plain(err)))
		}
	}

	return s.failed(err)
}

// startOf is when a service was started; zero where it does not run.
func (m *Machine) startOf(ctx context.Context, id string) (started time.Time, err error) {
	err = m.readMember(ctx, func(ctx context.Context, s *session) error {
		service, err := serviceIn(ctx, s, id)
		if errors.Is(err, ErrGone) {
			return nil
		}

		if err == nil {
			started = service.Metadata().Created()
		}

		return err
	})

	return started, err
}

// restartedSince is nil once a service was started after a time, and works.
func (m *Machine) restartedSince(ctx context.Context, id string, before time.Time) error {
	return m.readMember(ctx, func(ctx context.Context, s *session) error {
		service, err := serviceIn(ctx, s, id)

		switch {
		case err != nil:
			return notRunning(err)
		case service.Metadata().Created().Equal(before):
			return fmt.Errorf("%w: Talos has not restarted the service yet", ErrInProgress)
		default:
			return works(service, id)
		}
	})
}

// serviceIn is a service as Talos shows it while it runs; each start creates a new one (Talos 1.13,
// v1alpha1/service.go/Run). It is ErrGone while it does not run.
func serviceIn(ctx context.Context, s *session, id string) (*v1alpha1.Service, error) {
	return get[*v1alpha1.Service](ctx, s, v1alpha1.NamespaceName, v1alpha1.ServiceType, id)
}

// notRunning says of a service that Talos does not show that it may run later.
func notRunning(err error) error {
	if errors.Is(err, ErrGone) {
		return fmt.Errorf("%w: the service is not running", ErrInProgress)
	}

	return err
}

// works is nil for a service that runs and is healthy. Talos looks at the health of the kubelet: until it did, that is
// unknown, as it stays for the services of extensions (Talos 1.13, services/kubelet.go/HealthFunc; extension.go has
// none).
func works(service *v1alpha1.Service, id string) error {
	state := service.TypedSpec()
	if !state.Running || !state.Healthy && (!state.Unknown || id == kubeletServiceID) {
		return fmt.Errorf("%w: the service is running but not healthy", ErrInProgress)
	}

	return nil
}
