package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
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

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// imageSpace is one namespace of one containerd instance of a machine.
type imageSpace struct {
	driver    common.ContainerDriver
	namespace common.ContainerdNamespace
}

// The instances that installer images are pulled into: the new API's default, which is
// on EPHEMERAL, and the one in memory, which the legacy call uses.
var (
	systemSpace   = imageSpace{common.ContainerDriver_CRI, common.ContainerdNamespace_NS_SYSTEM}
	podSpace      = imageSpace{common.ContainerDriver_CRI, common.ContainerdNamespace_NS_CRI} // what a kubelet runs
	inMemorySpace = imageSpace{common.ContainerDriver_CONTAINERD, common.ContainerdNamespace_NS_SYSTEM}
)

// spaceOf validates as Talos does (Talos 1.13, ctrhelper.ContainerdInstanceHelper).
func spaceOf(req *common.ContainerdInstance) (imageSpace, error) {
	space := imageSpace{req.GetDriver(), req.GetNamespace()}

	switch {
	case space.driver != common.ContainerDriver_CONTAINERD && space.driver != common.ContainerDriver_CRI:
		return space, status.Errorf(codes.InvalidArgument, "invalid containerd driver %s", space.driver)
	case space.namespace != common.ContainerdNamespace_NS_CRI && space.namespace != common.ContainerdNamespace_NS_SYSTEM:
		return space, status.Errorf(codes.InvalidArgument, "invalid containerd namespace %s", space.namespace)
	case space.driver == common.ContainerDriver_CONTAINERD && space.namespace == common.ContainerdNamespace_NS_CRI:
		return space, status.Error(codes.InvalidArgument, "cannot use CRI namespace with containerd driver")
	default:
		return space, nil
	}
}

// storedImage is one name in an image store.
type storedImage struct {
	key    string // content key
	digest string
	at     time.Time
	asked  bool // by a client, not only by a service of the machine
}

// imageStores are a machine's pulled images by name.
type imageStores map[imageSpace]map[string]storedImage

// storesOf returns the stores that hold a space; sim.mu is held.
func (b *boot) storesOf(space imageSpace) imageStores {
	if space.driver == common.ContainerDriver_CONTAINERD {
		if b.images == nil {
			b.images = imageStores{}
		}

		return b.images
	}

	if b.m.disk.images == nil {
		b.m.disk.images = imageStores{}
	}

	return b.m.disk.images
}

// storedImage finds an image by one of its names.
func (b *boot) storedImage(space imageSpace, name string) (storedImage, bool) {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	img, ok := b.storesOf(space)[space][name]

	return img, ok
}

// listImages calls f for every name in a store, in order.
func (b *boot) listImages(space imageSpace, f func(name string, img storedImage) error) error {
	b.sim.mu.Lock()
	images := maps.Clone(b.storesOf(space)[space])
	b.sim.mu.Unlock()

	for _, name := range slices.Sorted(maps.Keys(images)) {
		if err := f(name, images[name]); err != nil {
			return err
		}
	}

	return nil
}

// size of an image is the same wherever it is listed, between 64 and 128 MiB.
func (i storedImage) size() int64 {
	sum := sha256.Sum256([]byte(i.key))

	return 64<<20 + int64(binary.BigEndian.Uint32(sum[:])%(64<<20))
}

// errImageNotFound is containerd's error for an image that no registry has.
var errImageNotFound = errors.New("not found")

// pullImage brings an image into a store under the names that Talos gives it and
// returns its pinned name. One that is there already is not asked for again.
func (b *boot) pullImage(ctx context.Context, space imageSpace, reference string, progress func(done, total int64)) (string, error) {
	return b.fetchImage(ctx, space, reference, b.m.delays.Pull, progress)
}

// pullForClient is pullImage that a client asked for.
func (b *boot) pullForClient(ctx context.Context, space imageSpace, reference string, progress func(done, total int64)) (string, error) {
	pinned, err := b.pullImage(ctx, space, reference, progress)
	if err != nil {
		return "", err
	}

	b.sim.update(func() {
		images := b.storesOf(space)[space]

		for name, img := range images {
			if img.key == images[pinned].key {
				img.asked = true
				images[name] = img
			}
		}
	})

	return pinned, nil
}

// pullForService gets the image of etcd or the kubelet; what may get better is tried again
// (Talos 1.13, services/etcd.go and services/kubelet.go, PreFunc).
func (b *boot) pullForService(ctx context.Context, image string) error {
	for {
		_, err := b.pullImage(ctx, systemSpace, image, func(int64, int64) {})
		if err == nil || errors.Is(err, errImageNotFound) {
			return err
		}

		if err := timing.Pause(ctx, kube.CrashPause); err != nil {
			return err
		}
	}
}

// fetchImage is pullImage that takes as long as given.
func (b *boot) fetchImage(
	ctx context.Context, space imageSpace, reference string, delay time.Duration, progress func(done, total int64),
) (string, error) {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return "", fmt.Errorf("failed to parse image reference %q: %w", reference, err)
	}

	key, digest, img := b.sim.registries.resolve(ref)
	stored := storedImage{key: key, digest: digest, at: time.Now()}
	name := ref.Registry + "/" + ref.Repository
	pinned := name + "@" + digest
	tagged := name + "@" + digest

	// A reference with a digest loses its tag (distribution/reference.ParseDockerRef).
	if ref.Digest == "" {
		tagged = key
	}

	if _, ok := b.storedImage(space, tagged); ok {
		return pinned, nil
	}

	switch {
	case img.Missing:
		return "", fmt.Errorf("failed to pull image %q: failed to resolve reference %q: %s: %w", tagged, tagged, tagged, errImageNotFound)
	case img.Unavailable:
		return "", fmt.Errorf("failed to pull image %q: failed to resolve reference %q: unexpected status from HEAD request to https://%s/v2/: "+
			"503 Service Unavailable", tagged, tagged, ref.Registry)
	}

	progress(0, stored.size())

	if err := timing.Pause(ctx, delay); err != nil {
		return "", fmt.Errorf("failed to pull image %q: %w", tagged, err)
	}

	progress(stored.size(), stored.size())

	b.sim.update(func() {
		stores := b.storesOf(space)
		if stores[space] == nil {
			stores[space] = map[string]storedImage{}
		}

		for _, alias := range []string{digest, tagged, pinned} {
			stores[space][alias] = stored
		}
	})

	return pinned, nil
}

// pullStatus is the code that an error of pullImage gets.
func pullStatus(err error) error {
	if errors.Is(err, errImageNotFound) {
		return status.Errorf(codes.NotFound, "error pulling image: %s", err)
	}

	return err
}

// imageServer is the image API that came with Talos 1.13.
type imageServer struct {
	machine.UnimplementedImageServiceServer

	b *boot
}

// List implements machine.ImageServiceServer.
func (s *imageServer) List(req *machine.ImageServiceListRequest, stream machine.ImageService_ListServer) error {
	space, err := spaceOf(req.GetContainerd())
	if err != nil {
		return err
	}

	return s.b.listImages(space, func(name string, img storedImage) error {
		return stream.Send(&machine.ImageServiceListResponse{
			Name: name, Digest: img.digest, Size: img.size(), CreatedAt: timestamppb.New(img.at),
		})
	})
}

// Pull implements machine.ImageServiceServer: progress of one layer, then the name to
// use from then on, which is pinned by digest.
func (s *imageServer) Pull(req *machine.ImageServicePullRequest, stream machine.ImageService_PullServer) error {
	annotate(stream.Context(), req.GetImageRef())

	space, err := spaceOf(req.GetContainerd())
	if err != nil {
		return err
	}

	began := time.Now()

	name, err := s.b.pullForClient(stream.Context(), space, req.GetImageRef(), func(done, total int64) {
		state := machine.ImageServicePullLayerProgress_DOWNLOADING
		if done == total {
			state = machine.ImageServicePullLayerProgress_EXTRACT_COMPLETE
		}

		// Talos drops what it cannot send, too: the result is what counts.
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
	annotate(ctx, req.GetImageRef())

	space, err := spaceOf(req.GetContainerd())
	if err != nil {
		return nil, err
	}

	if _, ok := s.b.storedImage(space, req.GetImageRef()); !ok {
		return nil, status.Errorf(codes.NotFound, "image %s not found", req.GetImageRef())
	}

	s.b.sim.update(func() { delete(s.b.storesOf(space)[space], req.GetImageRef()) })

	return &emptypb.Empty{}, nil
}

// legacySpace is the namespace of the calls before Talos 1.13, which know only CRI.
func legacySpace(namespace common.ContainerdNamespace) (imageSpace, error) {
	space := imageSpace{common.ContainerDriver_CRI, namespace}
	if namespace != common.ContainerdNamespace_NS_CRI && namespace != common.ContainerdNamespace_NS_SYSTEM {
		return space, status.Errorf(codes.InvalidArgument, "invalid namespace %s", namespace)
	}

	return space, nil
}

// ImageList is the legacy call.
func (a *api) ImageList(req *machine.ImageListRequest, stream machine.MachineService_ImageListServer) error {
	space, err := legacySpace(req.GetNamespace())
	if err != nil {
		return err
	}

	return a.b.listImages(space, func(name string, img storedImage) error {
		return stream.Send(&machine.ImageListResponse{
			Name: name, Digest: img.digest, Size: img.size(), CreatedAt: timestamppb.New(img.at),
		})
	})
}

// ImagePull is the legacy call: no progress, and no pinned name.
func (a *api) ImagePull(ctx context.Context, req *machine.ImagePullRequest) (*machine.ImagePullResponse, error) {
	annotate(ctx, req.GetReference())

	space, err := legacySpace(req.GetNamespace())
	if err != nil {
		return nil, err
	}

	if _, err := a.b.pullForClient(ctx, space, req.GetReference(), func(int64, int64) {}); err != nil {
		return nil, pullStatus(err)
	}

	return &machine.ImagePullResponse{Messages: []*machine.ImagePull{{}}}, nil
}

// PulledImages are the tag references of the images that clients let the machine pull into
// its system namespace (where upgrades look by default), sorted. It is meant for tests' assertions.
func (m *Machine) PulledImages() []string {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	var names []string

	for name, img := range m.disk.images[systemSpace] {
		if img.asked && !strings.Contains(name, "sha256:") {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return names
}
