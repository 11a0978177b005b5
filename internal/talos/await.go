package talos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	runtimeapi "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/protobuf/proto"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// errNotAwaited is of a machine that has no event and has to be asked.
var errNotAwaited = errors.New("the machine sends no events and must be polled")

// Await returns once the machine may say something else than it said: its status is another one, its connection ended,
// or it takes connections where it did not answer. It changes nothing, and reads nothing but the status. The error is
// the context's, or says that a machine has to be asked: one behind a control plane, or one that is no member of the
// cluster.
func (m *Machine) Await(ctx context.Context, last step.MachineState) error {
	switch {
	case m.asWanted().Through:
		return errNotAwaited
	case last.Answers():
		return m.awaitStatus(ctx, last)
	case last.Access == step.Unreachable:
		return m.awaitPort(ctx)
	default:
		return errNotAwaited
	}
}

// awaitStatus follows the status of a machine on the connection that is there.
func (m *Machine) awaitStatus(ctx context.Context, last step.MachineState) error {
	m.mu.Lock()
	s := m.session
	m.mu.Unlock()

	if s == nil || !s.alive() {
		return nil
	}

	id := runtime.MachineStatusID

	stream, err := s.resources.Watch(ctx, &cosi.WatchRequest{
		Namespace: runtime.NamespaceName, Type: runtime.MachineStatusType, Id: &id, Options: &cosi.WatchOptions{},
		ApiVersion: 1,
	})
	// A connection that ended is news.
	ended := func(err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.alive():
			return fmt.Errorf("watch %s: %w", runtime.MachineStatusType, s.failed(err))
		default:
			return nil
		}
	}

	if err != nil {
		return ended(err)
	}

	var first []byte

	for {
		answer, err := stream.Recv()
		if err != nil {
			return ended(err)
		}

		for _, event := range answer.GetEvent() {
			spec := event.GetResource().GetSpec().GetProtoSpec()

			switch {
			case first == nil && !tells(spec, last):
				first = spec
			case !bytes.Equal(spec, first):
				return nil
			}
		}
	}
}

// tells reports whether a status differs from the machine's last one.
func tells(spec []byte, last step.MachineState) bool {
	var status runtimeapi.MachineStatusSpec
	if len(spec) == 0 || proto.Unmarshal(spec, &status) != nil {
		return false
	}

	// The status alone does not distinguish an installation that a document asks for from a boot.
	if last.Stage == step.StageInstalling {
		return false
	}

	stage := step.Stage(runtime.MachineStage(status.GetStage()).String())

	return stage != last.Stage || status.GetStatus().GetReady() != last.Ready
}

// awaitPort waits until the machine takes connections.
func (m *Machine) awaitPort(ctx context.Context) error {
	return wait.Until(ctx, m.fleet.options.Timeouts.Poll, func(ctx context.Context) error {
		if slices.ContainsFunc(m.addresses(), func(address string) bool { return m.fleet.options.takes(ctx, address) }) {
			return nil
		}

		return errors.New("the machine accepts no connections")
	})
}

// addresses are all at which the machine may be.
func (m *Machine) addresses() []string {
	all := []string{m.address}

	for _, other := range []string{m.asWanted().PreviousAddress, m.asWanted().WaitsAt} {
		if other != "" {
			all = append(all, other)
		}
	}

	return all
}

// takes reports whether an address accepts connections.
func (o Options) takes(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, o.Timeouts.Connect)
	defer cancel()

	at, _ := o.place(address)

	conn, err := o.Dial(ctx, "tcp", at)
	if err != nil {
		return false
	}

	_ = conn.Close() // nothing was said

	return true
}
