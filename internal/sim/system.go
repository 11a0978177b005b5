package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
)

// Version returns the release; features are set once there is a configuration.
func (a *api) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	v := &machine.Version{
		Version: &machine.VersionInfo{
			Tag: a.b.TalosVersion(), Sha: "talossim", Built: "", GoVersion: runtime.Version(), Os: "linux", Arch: runtime.GOARCH,
		},
		Platform: &machine.PlatformInfo{Name: a.b.m.Platform.String(), Mode: a.b.m.Platform.String()},
	}

	if !a.b.InMaintenance() {
		v.Features = &machine.FeaturesInfo{Rbac: true}
	}

	return &machine.VersionResponse{Messages: []*machine.Version{v}}, nil
}

// Hostname returns the hostname, empty before there is one.
func (a *api) Hostname(context.Context, *emptypb.Empty) (*machine.HostnameResponse, error) {
	return &machine.HostnameResponse{Messages: []*machine.Hostname{{Hostname: a.b.Hostname()}}}, nil
}

// Read serves the few files that clients identify a machine by.
func (a *api) Read(req *machine.ReadRequest, stream machine.MachineService_ReadServer) error {
	apid.Annotate(stream.Context(), req.GetPath())

	content, err := a.b.file(req.GetPath())
	if err != nil {
		return err
	}

	return stream.Send(&common.Data{Bytes: content})
}

func (b *boot) file(path string) ([]byte, error) {
	switch path {
	case "/proc/sys/kernel/random/boot_id":
		return []byte(b.KernelBoot() + "\n"), nil
	case "/etc/os-release":
		v := b.TalosVersion()

		return fmt.Appendf(nil, "NAME=\"Talos\"\nID=talos\nVERSION_ID=%s\nPRETTY_NAME=\"Talos (%s)\"\n", v, v), nil
	case "/proc/bus/pci/devices":
		return []byte("0000\t80861237\t0\n"), nil
	case "/", "/etc", "/proc", "/var":
		return nil, errors.New("path must be a regular file")
	default:
		return nil, status.Errorf(codes.NotFound, "stat %s: no such file or directory", path)
	}
}

// raftSnapshotPath is where etcd keeps the snapshots of raft.
const raftSnapshotPath = constants.EtcdDataPath + "/member/snap"

// List serves the two directories that clients look into: etcd's data directory, which
// is there once etcd prepares and holds "member" as soon as etcd has data, and the one of
// its snapshots. Any other path answers as one that does not exist.
func (a *api) List(req *machine.ListRequest, stream machine.MachineService_ListServer) error {
	root := "/" + strings.Trim(req.GetRoot(), "/")
	apid.Annotate(stream.Context(), root)

	node := a.b.etcd.Node()
	prepared, _ := a.b.Services.State("etcd")
	directory := func(name string) *machine.FileInfo {
		return &machine.FileInfo{Name: path.Join(root, name), RelativeName: name, IsDir: true,
			Mode: uint32(fs.ModeDir | 0o700)}
	}

	entries := []*machine.FileInfo{directory(".")}

	switch {
	case root == constants.EtcdDataPath && prepared != "" && node == nil:
	case root == constants.EtcdDataPath && prepared != "":
		entries = append(entries, directory("member"))
	case root == raftSnapshotPath && node != nil:
		files, err := node.RaftSnapshots()
		if err != nil {
			return err
		}

		for name, made := range files {
			entries = append(entries, &machine.FileInfo{Name: path.Join(root, name), RelativeName: name, Mode: 0o644,
				Modified: made.Unix()})
		}
	default:
		return fmt.Errorf("lstat %s: no such file or directory", root)
	}

	for _, entry := range entries {
		if err := stream.Send(entry); err != nil {
			return err
		}
	}

	return nil
}

// storageServer lists disks through the old API.
type storageServer struct {
	storage.UnimplementedStorageServiceServer

	b *boot
}

// Disks implements storage.StorageServiceServer; containers have none.
func (s *storageServer) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	list := &storage.Disks{}

	system := s.b.m.SystemDisk()

	for _, d := range s.b.m.Disks {
		list.Disks = append(list.Disks, &storage.Disk{
			DeviceName: d.Path, Size: d.Size, Model: d.Model, Serial: d.Serial,
			SystemDisk: d.Path == system,
		})
	}

	return &storage.DisksResponse{Messages: []*storage.Disks{list}}, nil
}

// timeServer answers with this machine's clock.
type timeServer struct {
	timeapi.UnimplementedTimeServiceServer
}

// Time implements timeapi.TimeServiceServer.
func (*timeServer) Time(context.Context, *emptypb.Empty) (*timeapi.TimeResponse, error) {
	return &timeapi.TimeResponse{Messages: []*timeapi.Time{{
		Server: "pool.ntp.org", Localtime: timestamppb.Now(), Remotetime: timestamppb.Now(),
	}}}, nil
}
