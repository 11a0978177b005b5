package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

// imageServer is the image API that came with Talos 1.13.
type imageServer struct {
	machine.UnimplementedImageServiceServer

	b *boot
}

// List implements machine.ImageServiceServer.
func (s *imageServer) List(req *machine.ImageServiceListRequest, stream machine.ImageService_ListServer) error {
	space, err := images.SpaceOf(req.GetContainerd())
	if err != nil {
		return err
	}

	return s.b.images.List(space, func(name string, img images.Stored) error {
		return stream.Send(&machine.ImageServiceListResponse{
			Name: name, Digest: img.Digest, Size: img.Size(), CreatedAt: timestamppb.New(img.At),
		})
	})
}

// Pull implements machine.ImageServiceServer: progress of one layer, then the name to
// use from then on, which is pinned by digest.
func (s *imageServer) Pull(req *machine.ImageServicePullRequest, stream machine.ImageService_PullServer) error {
	apid.Annotate(stream.Context(), req.GetImageRef())

	space, err := images.SpaceOf(req.GetContainerd())
	if err != nil {
		return err
	}

	began := time.Now()

	name, err := s.b.images.PullForClient(stream.Context(), space, req.GetImageRef(), func(done, total int64) {
		state := machine.ImageServicePullLayerProgress_DOWNLOADING
		if done == total {
			state = machine.ImageServicePullLayerProgress_EXTRACT_COMPLETE
		}

		// Talos ignores send errors, too: the result counts.
		_ = stream.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_PullProgress{
			PullProgress: &machine.ImageServicePullProgress{
				LayerId: "sha256:simulated",
				Progress: &machine.ImageServicePullLayerProgress{
					Status: state, Elapsed: durationpb.New(time.Since(began)), Offset: done, Total: total,
				},
			},
		}})
	})
	if err != nil {
		return pullStatus(err)
	}

	return stream.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_Name{Name: name}})
}

// Remove implements machine.ImageServiceServer; the image's other names stay.
func (s *imageServer) Remove(ctx context.Context, req *machine.ImageServiceRemoveRequest) (*emptypb.Empty, error) {
	apid.Annotate(ctx, req.GetImageRef())

	space, err := images.SpaceOf(req.GetContainerd())
	if err != nil {
		return nil, err
	}

	if _, ok := s.b.images.Find(space, req.GetImageRef()); !ok {
		return nil, status.Errorf(codes.NotFound, "image %s not found", req.GetImageRef())
	}

	s.b.images.Remove(space, req.GetImageRef())

	return &emptypb.Empty{}, nil
}

// legacySpace is the namespace of the calls before Talos 1.13, which know only CRI.
func legacySpace(namespace common.ContainerdNamespace) (images.Space, error) {
	space := images.Space{Driver: common.ContainerDriver_CRI, Namespace: namespace}
	if namespace != common.ContainerdNamespace_NS_CRI && namespace != common.ContainerdNamespace_NS_SYSTEM {
		return space, status.Errorf(codes.InvalidArgument, "invalid namespace %s", namespace)
	}

	return space, nil
}

// pullStatus is the code that an error of pullImage gets.
func pullStatus(err error) error {
	if errors.Is(err, images.ErrNotFound) {
		return status.Errorf(codes.NotFound, "error pulling image: %s", err)
	}

	return err
}

// ImageList is the legacy call.
func (a *api) ImageList(req *machine.ImageListRequest, stream machine.MachineService_ImageListServer) error {
	space, err := legacySpace(req.GetNamespace())
	if err != nil {
		return err
	}

	return a.b.images.List(space, func(name string, img images.Stored) error {
		return stream.Send(&machine.ImageListResponse{
			Name: name, Digest: img.Digest, Size: img.Size(), CreatedAt: timestamppb.New(img.At),
		})
	})
}

// ImagePull is the legacy call: no progress, and no pinned name.
func (a *api) ImagePull(ctx context.Context, req *machine.ImagePullRequest) (*machine.ImagePullResponse, error) {
	apid.Annotate(ctx, req.GetReference())

	space, err := legacySpace(req.GetNamespace())
	if err != nil {
		return nil, err
	}

	if _, err := a.b.images.PullForClient(ctx, space, req.GetReference(), func(int64, int64) {}); err != nil {
		return nil, pullStatus(err)
	}

	return &machine.ImagePullResponse{Messages: []*machine.ImagePull{{}}}, nil
}

// PulledImages are the tag references of the images that clients let the machine pull into
// its system namespace (where upgrades look by default), sorted. It is meant for tests' assertions.
func (m *Machine) PulledImages() []string {
	m.World.Lock()
	defer m.World.Unlock()

	var names []string

	for name, img := range m.Disk.Images[images.SystemSpace] {
		if img.Asked && !strings.Contains(name, "sha256:") {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return names
}
