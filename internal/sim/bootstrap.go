package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

// Bootstrap makes the machine's etcd the first member of a new cluster, of the data in a
// snapshot where the request asks for that. The checks and
// their order are those of Talos 1.13; the answer comes before etcd runs.
func (a *api) Bootstrap(ctx context.Context, req *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	b := a.b

	if _, up := b.Services.State("cri"); !up {
		return nil, status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	}

	if err := b.onControlPlane("bootstrap"); err != nil {
		return nil, err
	}

	limited, cancel := context.WithTimeout(ctx, b.m.Delays.TimeSync)
	defer cancel()

	if b.World.Await(limited, b.Synced.Load) != nil {
		return nil, status.Error(codes.FailedPrecondition, "time is not in sync yet")
	}

	if b.etcdNode() != nil {
		return nil, status.Error(codes.AlreadyExists, errDataExists.Error())
	}

	// The service that waits to join is stopped, and marked finished so that the boot
	// sequence stops waiting for it. Clients can see this event.
	b.etcd.Stop()
	b.Services.Set("etcd", machined.ServiceFinished, "Bootstrap requested")

	if b.etcdNode() != nil {
		return nil, errDataExists
	}

	b.Services.Forget("etcd")
	b.etcd.Start(b, req)

	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// foundEtcd makes the data directory of the first member. A failed restoration may leave
// one too.
func (b *boot) foundEtcd(bootstrap *machine.BootstrapRequest) error {
	var (
		node etcd.Node
		err  error
	)

	if bootstrap.GetRecoverEtcd() {
		node, err = b.recoverEtcd(bootstrap.GetRecoverSkipHashCheck())
	} else {
		node, err = b.sim.backends.etcd.Create(b.etcdHost())
	}

	b.World.Update(func() { b.m.Disk.Etcd = node })

	return err
}

// recoverEtcd makes the first member of a new etcd cluster from the machine's snapshot, as
// Talos does (1.13, services/etcd.go, recoverFromSnapshot): first the pages of the database
// are looked at, then it is copied and its sum compared, and only a restored snapshot is
// deleted. A restoration that fails later than that first look leaves what it copied: the
// data directory is not empty any more, and no etcd ever serves from it.
func (b *boot) recoverEtcd(skipHashCheck bool) (etcd.Node, error) {
	path := b.m.SnapshotFile()
	if path == "" {
		return nil, fmt.Errorf("error verifying snapshot: %w", errNoSnapshotFile)
	}

	node, err := b.sim.backends.etcd.Restore(b.Ctx, b.etcdHost(), path, skipHashCheck)

	switch {
	case err == nil:
		b.m.DropSnapshotFile()
	case errors.Is(err, objects.ErrPanicked):
		b.World.Logf("%s: kernel panic: machined ended: %v", b.m.Name(), err)
		b.m.crash()
	}

	return node, err
}

// errNoSnapshotFile is what etcd says of a snapshot that nobody uploaded.
var errNoSnapshotFile = errors.New("stat " + constants.EtcdRecoverySnapshotPath + ": no such file or directory")

// errDataExists ends a bootstrap on a machine that has etcd data.
var errDataExists = errors.New("etcd data directory is not empty")
