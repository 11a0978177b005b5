package talos

import (
	"context"
	"fmt"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// RestartKubelet restarts a member's kubelet, which registers its node when it starts and at no other time. The
// containers of pods go on. A kubelet is one of the two kinds of services that Talos lets be restarted (Talos 1.13,
// services/kubelet.go/APIRestartAllowed). Safe to repeat.
func (m *Machine) RestartKubelet(ctx context.Context) error {
	if err := m.restartKubelet(ctx); err != nil {
		return fmt.Errorf("restart the kubelet of %s: %w", m.address, err)
	}

	return nil
}

func (m *Machine) restartKubelet(ctx context.Context) error {
	s, err := m.changing(ctx, cluster.Member, m.knownUUID())
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	if _, err := s.machine.ServiceRestart(ctx, &machineapi.ServiceRestartRequest{Id: kubeletServiceID}); err != nil {
		return s.failed(err)
	}

	return nil
}
