package talos

import (
	"context"
	"fmt"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// RestartKubelet restarts a member's kubelet, which registers its node when it starts and at no other time. The
// containers of pods go on. Safe to repeat.
func (m *Machine) RestartKubelet(ctx context.Context) error {
	return m.RestartService(ctx, kubeletServiceID)
}

// What Talos says to a restart that it does not do, with code Unknown (Talos 1.13, system/system.go/APIRestart).
var noRestart = []string{"doesn't support restart operation via API", "not defined"}

// RestartService restarts a service of a member by its id. Talos lets the kubelet and the services of extensions be
// restarted, and no others (Talos 1.13, services/kubelet.go and extension.go, APIRestartAllowed); another one is a
// permanent ErrRejected. Safe to repeat.
func (m *Machine) RestartService(ctx context.Context, service string) error {
	if err := m.restartService(ctx, service); err != nil {
		return fmt.Errorf("restart %s of %s: %w", service, m.address, err)
	}

	return nil
}

func (m *Machine) restartService(ctx context.Context, service string) error {
	s, err := m.changing(ctx, cluster.Member, m.knownUUID())
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
