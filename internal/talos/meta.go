package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// WriteMeta makes values what META of a member holds under their keys. META is read
// first and only what differs is written, on a new connection, after the hardware UUID
// was compared on it; other keys are left alone. It is safe to repeat.
//
// Talos writes META to the disk before it answers, and applies a network configuration
// (0x0a) at once (Talos 1.13, platform metal): after that key the machine has to keep
// answering for a moment, else the error is ErrInProgress and an observation shows what
// became of it. Permanent are ErrUnsupported (a container has no META),
// ErrNotAuthorized and ErrRejected (META is full). Errors never hold values.
func (m *Machine) WriteMeta(ctx context.Context, values map[uint8]string) error {
	return doing(m.writeMeta(ctx, values), "write META of %s", m.address)
}

func (m *Machine) writeMeta(ctx context.Context, values map[uint8]string) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	held, err := bounded(ctx, m, s.meta)
	if err != nil {
		return err
	}

	missing := metakey.Missing(values, held)

	for _, key := range missing {
		if err := m.writeMetaKey(ctx, s, key, values[key]); err != nil {
			return fmt.Errorf("key %s: %w", metakey.Text(key), err)
		}
	}

	if !slices.Contains(missing, metakey.Network) {
		return nil
	}

	if err := m.settle(ctx, m.keepsAnswering()); err != nil {
		return fmt.Errorf("the network configuration changed (META key %s), and the machine does not respond reliably: %w",
			metakey.Text(metakey.Network), err)
	}

	return nil
}

func (m *Machine) writeMetaKey(ctx context.Context, s *session, key uint8, value string) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.MetaWrite(ctx, &machineapi.MetaWriteRequest{Key: uint32(key), Value: []byte(value)})
	if err == nil {
		return nil
	}

	// The call has no other precondition than a platform that keeps META.
	if status.Code(err) == codes.FailedPrecondition {
		return wait.Permanent(fmt.Errorf("%w: this platform has no META, as in containers: %w", ErrUnsupported, plain(err)))
	}

	return final(s.failed(err))
}

// steadyAnswers is how many times in a row a machine has to answer, each on a new
// connection, before its network counts as working.
const steadyAnswers = 4

// keepsAnswering is nil once the machine answered several times in a row.
func (m *Machine) keepsAnswering() func(context.Context) error {
	answered := 0

	return func(ctx context.Context) error {
		s, err := m.dial(ctx)
		if err == nil {
			_, _, _, err = m.status(ctx, s)
		}

		if err != nil {
			answered = 0

			return err
		}

		if answered++; answered < steadyAnswers {
			return errors.New("the machine has not yet responded several times in a row")
		}

		return nil
	}
}

// observeMeta fills in what META holds, when any of it is wanted.
func (m *Machine) observeMeta(ctx context.Context, s *session, out *step.MachineState) error {
	if len(m.asWanted().Meta) == 0 {
		return nil
	}

	held, err := bounded(ctx, m, s.meta)
	out.Meta = held

	return err
}

// bootProved is nil once a machine has no boot entry to roll back to. Until then any failed sequence makes the
// other entry the default, and the next installer overwrites the running release (seen on Talos 1.13, emulated
// metal; machined main.go, revert.go). Talos drops that entry once the boot was running and ready
// (runtime/drop_upgrade_fallback.go). An installer writes it past the running system, so a machine that was
// installed and not booted shows none.
func (m *Machine) bootProved(s *session) func(context.Context) error {
	return func(ctx context.Context) error {
		held, err := bounded(ctx, m, s.meta)
		if err != nil {
			return err
		}

		if entry, kept := held[metakey.PreviousEntry]; kept {
			return fmt.Errorf("%w: Talos keeps boot entry %q for a rollback (META %s) until the machine is running and ready",
				ErrInProgress, entry, metakey.Text(metakey.PreviousEntry))
		}

		return nil
	}
}

// meta lists the values in META by their keys; none where there is no META.
func (s *session) meta(ctx context.Context) (map[uint8]string, error) {
	items, err := list[*runtime.MetaKey](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", runtime.MetaKeyType, err)
	}

	held := map[uint8]string{}

	for item := range items.All() {
		id := item.Metadata().ID()

		key, err := strconv.ParseUint(strings.TrimPrefix(id, "0x"), 16, 8)
		if err != nil {
			return nil, fmt.Errorf("list %s: %q is not a META key", runtime.MetaKeyType, id)
		}

		held[uint8(key)] = item.TypedSpec().Value
	}

	return held, nil
}

// observeUUID fills in the hardware UUID. Where that is enough, it is the recorded one of a machine whose
// certificate proves its node name. Otherwise it is the one that the machine reports. The certificate of a machine
// behind a control plane is not seen.
func (m *Machine) observeUUID(ctx context.Context, s *session, out *step.MachineState) error {
	if recorded := m.asWanted(); m.fleet.options.TrustNodeNames && recorded.NodeName != "" && s.relay == "" {
		uuid := usableUUID(recorded.UUID)
		names := []string{s.peer.nodeName(false), s.peer.nodeName(true)}

		if uuid != "" && slices.Contains(names, recorded.NodeName) {
			out.UUID = uuid

			return nil
		}
	}

	var err error

	out.UUID, err = bounded(ctx, m, s.hardwareUUID)

	return err
}
