package talos

import (
	"context"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Configuration reads the active configuration of a machine that is a member of
// the cluster of the credentials: the very bytes that were applied last, with all
// secrets in them. It needs the role os:admin. A machine in maintenance mode has
// none, which is ErrMaintenance.
func (m *Machine) Configuration(ctx context.Context) ([]byte, error) {
	var configuration []byte

	err := m.read(ctx, func(ctx context.Context, s *session) (err error) {
		if s.peer.access == step.Maintenance {
			return fmt.Errorf("%w: the machine has no configuration", ErrMaintenance)
		}

		configuration, err = m.observedConfig(ctx, s)

		return err
	})

	return configuration, err
}
