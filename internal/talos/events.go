package talos

import (
	"context"
	"errors"
	"fmt"
	"io"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/proto"
)

// bootstrapTrace is what Talos writes into its event log when it accepts a bootstrap: it marks the etcd service,
// which waits to join, as finished with this message (BootstrapEtcd, Talos 1.10 to 1.13). The service's own
// history does not keep it, because the service is reloaded right after.
const bootstrapTrace = "Bootstrap requested"

// bootstrapRequested reports whether a bootstrap was accepted in this boot. The log
// is a ring of about a thousand events that does not survive a reboot: a trace that
// is found proves a bootstrap, a trace that is not there proves less.
func (s *session) bootstrapRequested(ctx context.Context) (bool, error) {
	requested := false

	err := s.history(ctx, func(event *machineapi.Event) bool {
		requested = isBootstrapTrace(event)

		return !requested
	})
	if err != nil {
		return false, fmt.Errorf("read the event log: %w", err)
	}

	return requested, nil
}

func isBootstrapTrace(event *machineapi.Event) bool {
	var change machineapi.ServiceStateEvent

	if event.GetData().GetTypeUrl() != "talos/runtime/"+string(change.ProtoReflect().Descriptor().FullName()) {
		return false
	}

	if err := proto.Unmarshal(event.GetData().GetValue(), &change); err != nil {
		return false
	}

	return change.GetService() == etcdServiceID &&
		change.GetAction() == machineapi.ServiceStateEvent_FINISHED &&
		change.GetMessage() == bootstrapTrace
}

// history passes on the events that are in the log, oldest first, until visit
// returns false. The API has no end of history, it continues with what happens next;
// so the newest event is asked for first, and reading ends there.
func (s *session) history(ctx context.Context, visit func(*machineapi.Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	newest := ""

	err := s.events(ctx, 1, func(event *machineapi.Event) bool {
		newest = event.GetId()

		return false
	})
	if err != nil {
		return err
	}

	return s.events(ctx, -1, func(event *machineapi.Event) bool {
		return visit(event) && event.GetId() != newest
	})
}

// events streams the newest tail events, all of them when tail is negative, and
// whatever follows, until visit returns false. The first message of the stream is a
// greeting without a type (Talos 1.13) and is left out.
func (s *session) events(ctx context.Context, tail int32, visit func(*machineapi.Event) bool) error {
	stream, err := s.machine.Events(ctx, &machineapi.EventsRequest{TailEvents: tail})
	if err != nil {
		return s.failed(err)
	}

	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: the event stream ended early", ErrUnreachable)
		}

		if err != nil {
			return s.failed(err)
		}

		if event.GetData().GetTypeUrl() == "" {
			continue
		}

		if !visit(event) {
			return nil
		}
	}
}
