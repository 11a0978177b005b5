package talos

import (
	"bytes"
	"context"
	"errors"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// TryConfig makes a configuration the active one of a member, on a new connection, after it compared the hardware
// UUID there. Talos restores the previous one after revert, unless [Machine.ApplyConfig] keeps the new one before;
// a reboot ends the trial too. A change that would need a reboot is ErrRejected. ErrRejected, ErrUnsupported and
// ErrNotAuthorized are permanent.
//
// Talos restores the configuration that is active at the call (RollbackToConfigAfter, Talos 1.13). So a trial that
// is repeated within its time would never end. A configuration that is active already is therefore not sent again:
// the call is safe to repeat.
func (m *Machine) TryConfig(ctx context.Context, config []byte, uuid string, revert time.Duration) error {
	return doing(m.tryConfig(ctx, config, usableUUID(uuid), revert), "try configuration on %s", m.address)
}

func (m *Machine) tryConfig(ctx context.Context, config []byte, uuid string, revert time.Duration) error {
	s, err := m.changing(ctx, step.Member, uuid)
	if err != nil {
		return err
	}

	active, err := bounded(ctx, m, s.activeConfig)
	if err != nil {
		return err
	}

	if bytes.Equal(active, config) {
		return nil
	}

	err = m.apply(ctx, s, &machineapi.ApplyConfigurationRequest{
		Data: config, Mode: machineapi.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(revert),
	})

	// A change of the network can cost the answer and not the connection to come.
	return m.orSettled(ctx, s, final(err), m.runsWith(config))
}

// runsWith checks whether a configuration is the active one.
func (m *Machine) runsWith(config []byte) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		active, err := bounded(ctx, m, s.activeConfig)
		if err != nil {
			return err
		}

		if !bytes.Equal(active, config) {
			return errors.New("another configuration is active")
		}

		return nil
	}
}

// StageConfig stores a configuration that a member uses from its next boot on, on a
// new connection, after the hardware UUID was compared on it. Nothing changes before
// that boot. It is safe to repeat: the last one counts, and so does one that is applied
// in another way afterwards. ErrRejected, ErrUnsupported and ErrNotAuthorized are
// permanent.
func (m *Machine) StageConfig(ctx context.Context, config []byte, uuid string) error {
	s, err := m.changing(ctx, step.Member, usableUUID(uuid))
	if err == nil {
		err = final(m.apply(ctx, s, &machineapi.ApplyConfigurationRequest{Data: config,
			Mode: machineapi.ApplyConfigurationRequest_STAGED}))
	}

	return doing(err, "stage configuration on %s", m.address)
}
