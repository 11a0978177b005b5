package talos

import (
	"context"
	"errors"
	"fmt"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Bootstrap makes the machine the first member of a new etcd.
//
// On Talos (1.10 to 1.13) a second call that meets the first one, while etcd writes its first data, stops etcd
// until the next boot; afterwards one is harmless. So the call is made only when etcd waits, and neither runs nor
// was asked before. When its answer is lost, the event log shows whether it was accepted. A nil error means that
// etcd accepted the request, in this call or in an earlier one. An observation shows whether it then bootstrapped.
func (m *Machine) Bootstrap(ctx context.Context) error {
	return doing(m.beginEtcd(ctx), "bootstrap etcd on %s", m.address)
}

func (m *Machine) beginEtcd(ctx context.Context) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	wanted, _, err := m.wantsBootstrap(ctx, s)
	if err != nil || !wanted {
		return err
	}

	return m.bootstrap(ctx, s, &machineapi.BootstrapRequest{})
}

// wantsBootstrap reports whether etcd waits for a bootstrap, and whether this boot saw one.
func (m *Machine) wantsBootstrap(ctx context.Context, s *session) (wanted, requested bool, err error) {
	etcd, requested, err := m.etcdProgress(ctx, s)

	switch {
	case err != nil:
		return false, false, err
	case requested, etcd == step.ServiceRunning, etcd == preparingWithData, etcd == failedWithData:
		return false, requested, nil
	case etcd == step.ServicePreparing, etcd == step.ServiceFailed:
		// A control plane without a bootstrap is Preparing for half an hour, then Failed, and accepts one in both
		// states.
		return true, false, nil
	case etcd == "":
		return false, false, m.withoutEtcd(ctx, s)
	default:
		return false, false, fmt.Errorf("%w: the etcd service is %s", ErrInProgress, etcd)
	}
}

// withoutEtcd returns why a machine has no etcd service: a worker never has one, a control plane gets it during
// its boot.
func (m *Machine) withoutEtcd(ctx context.Context, s *session) error {
	raw, err := bounded(ctx, m, s.activeConfig)
	if err != nil {
		return err
	}

	section, err := machineSectionOf(raw)
	if err != nil {
		return err
	}

	if section.role() != step.ControlPlane {
		return wait.Permanent(fmt.Errorf("%w: the machine is a %s", ErrUnsupported, section.role()))
	}

	return fmt.Errorf("%w: the etcd service is not loaded yet", ErrInProgress)
}

func (m *Machine) bootstrap(ctx context.Context, s *session, request *machineapi.BootstrapRequest) error {
	callCtx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Bootstrap(callCtx, request)

	switch code := status.Code(err); {
	case err == nil, code == codes.AlreadyExists:
		return nil
	case code == codes.Unimplemented, code == codes.PermissionDenied:
		return wait.Permanent(s.failed(err))
	case code == codes.Unknown:
		// Talos stops the waiting etcd first; each plain error comes after that, and
		// nothing but a boot starts etcd again: with the data it has, where another call
		// made some, else to wait for a bootstrap (BootstrapEtcd and argsForControlPlane,
		// Talos 1.13).
		return wait.Permanent(fmt.Errorf(
			"%w; Talos stopped etcd for this call, as it does when two bootstrap calls overlap, and "+
				"restarts it at the next boot: reboot the machine, then apply again", callError(err)))
	}

	failure := s.failed(err)
	if !s.ambiguous(failure) {
		return failure
	}

	if trace := m.settle(ctx, m.findTrace); trace != nil {
		return fmt.Errorf("%w; the bootstrap had no visible effect: %w", failure, trace)
	}

	return nil
}

// findTrace is nil once the machine says that a bootstrap was accepted.
func (m *Machine) findTrace(ctx context.Context) error {
	s, _, err := m.connected(ctx)
	if err != nil {
		return err
	}

	requested, err := bounded(ctx, m, s.bootstrapRequested)
	if err != nil {
		return err
	}

	if !requested {
		return errors.New("the event log contains no bootstrap")
	}

	return nil
}
