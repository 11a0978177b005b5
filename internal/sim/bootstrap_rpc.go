package sim

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcdservice"
)

// Bootstrap makes the machine's etcd the first member of a new cluster, of the data in a
// snapshot where the request asks for that. The checks and
// their order are those of Talos 1.13 and 1.14; the answer comes before etcd runs.
func (a *api) Bootstrap(ctx context.Context, req *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	b := a.b

	if _, up := b.Services.State("cri"); !up {
		return nil, status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	}

	if err := b.onControlPlane("bootstrap"); err != nil {
		return nil, err
	}

	if !b.runsEtcd() {
		return nil, status.Error(codes.InvalidArgument, "etcd is not configured, bootstrap is not possible")
	}

	limited, cancel := context.WithTimeout(ctx, b.m.Delays.TimeSync)
	defer cancel()

	if b.World.Await(limited, b.Synced.Load) != nil {
		return nil, status.Error(codes.FailedPrecondition, "time is not in sync yet")
	}

	if b.etcd.Node() != nil {
		return nil, status.Error(codes.AlreadyExists, etcdservice.ErrDataExists.Error())
	}

	if err := b.etcd.Bootstrap(req); err != nil {
		return nil, err
	}

	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}
