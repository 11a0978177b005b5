package sim

import (
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// Events streams the boot's events. The first message is always an empty one, which
// tells the client that the subscription stands.
func (a *api) Events(req *machine.EventsRequest, stream machine.MachineService_EventsServer) error {
	pos, err := a.b.Events.Start(req)
	if err != nil {
		return err
	}

	hello := &machine.Event{Id: machined.NewEventID(), ActorId: req.GetWithActorId(), Data: &anypb.Any{}}
	if err := stream.Send(hello); err != nil {
		return err
	}

	for ; ; pos++ {
		ev, ok, err := a.b.Events.Next(stream.Context(), pos)
		if err != nil || !ok {
			return err
		}

		if req.GetWithActorId() != "" && req.GetWithActorId() != ev.Actor {
			continue
		}

		msg, err := ev.Wire()
		if err != nil {
			return err
		}

		if err := stream.Send(msg); err != nil {
			return err
		}
	}
}
