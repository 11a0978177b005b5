package sim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// EtcdRecover writes the snapshot for a later Bootstrap to EPHEMERAL. The checks, their order and the leftovers
// after an error are those of Talos 1.13: an existing file is lost as soon as another upload begins.
func (a *api) EtcdRecover(stream machine.MachineService_EtcdRecoverServer) error {
	b := a.b

	if !b.Ephemeral.Load() {
		return status.Error(codes.FailedPrecondition, "etcd service is not ready for recovery yet")
	}

	if err := b.onControlPlane("etcd recover"); err != nil {
		return err
	}

	path, err := b.m.makeSnapshotFile()
	if err != nil {
		return fmt.Errorf("error creating etcd recovery snapshot: %w", err)
	}

	if err := receive(stream, path); err != nil {
		if b.Alive() {
			b.m.DropSnapshotFile()
		}

		return err
	}

	return stream.SendAndClose(&machine.EtcdRecoverResponse{Messages: []*machine.EtcdRecover{{}}})
}

// receive writes an upload to a file.
func receive(stream machine.MachineService_EtcdRecoverServer, path string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("error creating etcd recovery snapshot: %w", err)
	}

	defer func() { err = errors.Join(err, file.Close()) }()

	for {
		data, err := stream.Recv()

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}

		if _, err := file.Write(data.GetBytes()); err != nil {
			return fmt.Errorf("error writing snapshot: %w", err)
		}
	}
}

// makeSnapshotFile finds a place for /var/lib/etcd.snapshot and makes it part of the disk.
func (m *Machine) makeSnapshotFile() (string, error) {
	folder, err := m.sim.scratch.folder()
	if err != nil {
		return "", err
	}

	path := filepath.Join(folder, m.Name()+"-etcd.snapshot")
	m.World.Update(func() { m.Disk.Snapshot = path })

	return path, nil
}

func (f *scratchFolder) folder() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.path != "" {
		return f.path, nil
	}

	path, err := os.MkdirTemp("", "talossim-*")
	if err != nil {
		return "", fmt.Errorf("make scratch folder: %w", err)
	}

	f.path = path

	return path, nil
}

func (f *scratchFolder) remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.path == "" {
		return nil
	}

	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("remove scratch folder: %w", err)
	}

	return nil
}
