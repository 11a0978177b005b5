package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// ServiceList lists the services with their latest events.
func (a *api) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{a.b.Services.List()}}, nil
}

// ServiceStart starts kubelet or an extension service; no other may be started.
func (a *api) ServiceStart(_ context.Context, req *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	if err := a.serviceOperation(req.GetId(), "start", req.GetId() == "kubelet"); err != nil {
		return nil, err
	}

	a.b.Services.Start(req.GetId())
	msg := fmt.Sprintf("Service %q started", req.GetId())

	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{Resp: msg}}}, nil
}

// ServiceStop stops an extension service; no other may be stopped.
func (a *api) ServiceStop(_ context.Context, req *machine.ServiceStopRequest) (*machine.ServiceStopResponse, error) {
	if err := a.serviceOperation(req.GetId(), "stop", false); err != nil {
		return nil, err
	}

	a.b.Services.Stop(req.GetId())
	msg := fmt.Sprintf("Service %q stopped", req.GetId())

	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{Resp: msg}}}, nil
}

// ServiceRestart restarts kubelet or an extension service; no other may be restarted.
func (a *api) ServiceRestart(
	ctx context.Context, req *machine.ServiceRestartRequest,
) (*machine.ServiceRestartResponse, error) {
	if err := a.serviceOperation(req.GetId(), "restart", req.GetId() == "kubelet"); err != nil {
		return nil, err
	}

	if req.GetId() == "kubelet" {
		a.b.kubelet.Restart()
	} else if err := a.restart(ctx, req.GetId()); err != nil {
		return nil, err
	}

	msg := fmt.Sprintf("Service %q restarted", req.GetId())

	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{Resp: msg}}}, nil
}

func (a *api) restart(ctx context.Context, id string) error {
	a.b.Services.Stop(id)

	if err := timing.Pause(ctx, time.Millisecond); err != nil {
		return err
	}

	a.b.Services.Start(id)

	return nil
}

// serviceOperation answers as Talos does: plain errors, so the code is Unknown.
func (a *api) serviceOperation(id, operation string, allowed bool) error {
	if st, _ := a.b.Services.State(id); st == "" {
		return fmt.Errorf("service %q not defined", id)
	}

	if !allowed && !strings.HasPrefix(id, "ext-") {
		return fmt.Errorf("service %q doesn't support %s operation via API", id, operation)
	}

	return nil
}
