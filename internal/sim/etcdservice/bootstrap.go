package etcdservice

import (
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

// Bootstrap restarts the service, to make the first member of a new cluster.
func (s *Service) Bootstrap(req *machine.BootstrapRequest) error {
	// The service that waits to join is stopped, and marked finished so that the boot
	// sequence stops waiting for it. Clients can see this event.
	s.Stop()
	s.Services.Set("etcd", machined.ServiceFinished, "Bootstrap requested")

	if s.Node() != nil {
		return ErrDataExists
	}

	s.Services.Forget("etcd")
	s.Start(req)

	return nil
}

// foundEtcd makes the data directory of the first member. A failed restoration may leave
// one too.
func (s *Service) foundEtcd(bootstrap *machine.BootstrapRequest) error {
	var (
		node etcd.Node
		err  error
	)

	if bootstrap.GetRecoverEtcd() {
		node, err = s.recoverEtcd(bootstrap.GetRecoverSkipHashCheck())
	} else {
		node, err = s.backend.Create(s.etcdHost())
	}

	s.World.Update(func() { s.Disk.Etcd = node })

	return err
}

// recoverEtcd makes the first member of a new etcd cluster from the machine's snapshot, as
// Talos does (1.13, services/etcd.go, recoverFromSnapshot): first the pages of the database
// are looked at, then it is copied and its sum compared, and only a restored snapshot is
// deleted. A restoration that fails later than that first look leaves what it copied: the
// data directory is not empty any more, and no etcd ever serves from it.
func (s *Service) recoverEtcd(skipHashCheck bool) (etcd.Node, error) {
	path := s.SnapshotFile()
	if path == "" {
		return nil, fmt.Errorf("error verifying snapshot: %w", errNoSnapshotFile)
	}

	node, err := s.backend.Restore(s.Ctx, s.etcdHost(), path, skipHashCheck)

	switch {
	case err == nil:
		s.DropSnapshotFile()
	case errors.Is(err, objects.ErrPanicked):
		s.World.Logf("%s: kernel panic: machined ended: %v", s.Name(), err)
		s.host.Crash()
	}

	return node, err
}

// errNoSnapshotFile is the error of etcd for a snapshot that was not uploaded.
var errNoSnapshotFile = errors.New("stat " + constants.EtcdRecoverySnapshotPath + ": no such file or directory")

// ErrDataExists ends a bootstrap on a machine that has etcd data.
var ErrDataExists = errors.New("etcd data directory is not empty")
