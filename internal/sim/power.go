package sim

import (
	"context"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// notInContainer refuses calls that a container does not support.
func (b *boot) notInContainer() error {
	if b.m.Platform == machined.Container {
		return status.Error(codes.FailedPrecondition, "method is not supported in container mode")
	}

	return nil
}

// Reboot answers at once and reboots in the background; that it was refused because
// another sequence runs shows only in the events.
func (a *api) Reboot(_ context.Context, req *machine.RebootRequest) (*machine.RebootResponse, error) {
	if err := a.b.notInContainer(); err != nil {
		return nil, err
	}

	actor := uuid.NewString()
	force := req.GetMode() == machine.RebootRequest_FORCE
	a.b.StartSequence("reboot", actor, false, a.b.rebootSequence(force))

	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: actor}}}, nil
}

// Shutdown stops the machine; it takes over any running sequence.
func (a *api) Shutdown(_ context.Context, req *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	if err := a.b.notInContainer(); err != nil {
		return nil, err
	}

	actor := uuid.NewString()
	a.b.StartSequence("shutdown", actor, true, a.b.shutdownSequence(req.GetForce()))

	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{ActorId: actor}}}, nil
}
