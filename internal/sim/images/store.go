package images

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/sim/world"
)

// Space is one namespace of one containerd instance of a machine.
type Space struct {
	Driver    common.ContainerDriver
	Namespace common.ContainerdNamespace
}

// The instances that installer images are pulled into: the new API's default, which is
// on EPHEMERAL, and the one in memory, which the legacy call uses.
var (
	SystemSpace   = Space{common.ContainerDriver_CRI, common.ContainerdNamespace_NS_SYSTEM}
	PodSpace      = Space{common.ContainerDriver_CRI, common.ContainerdNamespace_NS_CRI} // what a kubelet runs
	InMemorySpace = Space{common.ContainerDriver_CONTAINERD, common.ContainerdNamespace_NS_SYSTEM}
)

// SpaceOf validates as Talos does (Talos 1.13, ctrhelper.ContainerdInstanceHelper).
func SpaceOf(req *common.ContainerdInstance) (Space, error) {
	space := Space{req.GetDriver(), req.GetNamespace()}

	switch {
	case space.Driver != common.ContainerDriver_CONTAINERD && space.Driver != common.ContainerDriver_CRI:
		return space, status.Errorf(codes.InvalidArgument, "invalid containerd driver %s", space.Driver)
	case space.Namespace != common.ContainerdNamespace_NS_CRI && space.Namespace != common.ContainerdNamespace_NS_SYSTEM:
		return space, status.Errorf(codes.InvalidArgument, "invalid containerd namespace %s", space.Namespace)
	case space.Driver == common.ContainerDriver_CONTAINERD && space.Namespace == common.ContainerdNamespace_NS_CRI:
		return space, status.Error(codes.InvalidArgument, "cannot use CRI namespace with containerd driver")
	default:
		return space, nil
	}
}

// Stored is one name in an image store.
type Stored struct {
	Key    string // content key
	Digest string
	At     time.Time
	Asked  bool // by a client, not only by a service of the machine
}

// Pulled are a machine's pulled images by name.
type Pulled map[Space]map[string]Stored

// Store is what one boot of a machine has pulled: to EPHEMERAL, and into memory.
type Store struct {
	world      *world.World
	registries *Registries
	pull       time.Duration

	// Guarded by world.
	disk   *Pulled
	memory Pulled
}

// NewStore makes the store of a boot on what is on the disk.
func NewStore(w *world.World, registries *Registries, disk *Pulled, pull time.Duration) *Store {
	return &Store{world: w, registries: registries, disk: disk, pull: pull}
}

// storesOf returns the stores that hold a space; world is held.
func (s *Store) storesOf(space Space) Pulled {
	if space.Driver == common.ContainerDriver_CONTAINERD {
		if s.memory == nil {
			s.memory = Pulled{}
		}

		return s.memory
	}

	if *s.disk == nil {
		*s.disk = Pulled{}
	}

	return *s.disk
}

// Find finds an image by one of its names.
func (s *Store) Find(space Space, name string) (Stored, bool) {
	s.world.Lock()
	defer s.world.Unlock()

	img, ok := s.storesOf(space)[space][name]

	return img, ok
}

// List calls f for every name in a store, in order.
func (s *Store) List(space Space, f func(name string, img Stored) error) error {
	s.world.Lock()
	images := maps.Clone(s.storesOf(space)[space])
	s.world.Unlock()

	for _, name := range slices.Sorted(maps.Keys(images)) {
		if err := f(name, images[name]); err != nil {
			return err
		}
	}

	return nil
}

// Size of an image is the same wherever it is listed, between 64 and 128 MiB.
func (i Stored) Size() int64 {
	sum := sha256.Sum256([]byte(i.Key))

	return 64<<20 + int64(binary.BigEndian.Uint32(sum[:])%(64<<20))
}

// ErrNotFound is containerd's error for an image that no registry has.
var ErrNotFound = errors.New("not found")

// Pull pulls an image into a store under the names that Talos gives it and returns its pinned name. An existing
// one is not requested again.
func (s *Store) Pull(
	ctx context.Context, space Space, reference string, progress func(done, total int64),
) (string, error) {
	return s.Fetch(ctx, space, reference, s.pull, progress)
}

// PullForClient is pullImage for a request of a client.
func (s *Store) PullForClient(
	ctx context.Context, space Space, reference string, progress func(done, total int64),
) (string, error) {
	pinned, err := s.Pull(ctx, space, reference, progress)
	if err != nil {
		return "", err
	}

	s.world.Update(func() {
		images := s.storesOf(space)[space]

		for name, img := range images {
			if img.Key == images[pinned].Key {
				img.Asked = true
				images[name] = img
			}
		}
	})

	return pinned, nil
}

// PullForService gets the image of etcd or the kubelet; what may get better is tried again
// (Talos 1.13, services/etcd.go and services/kubelet.go, PreFunc).
func (s *Store) PullForService(ctx context.Context, image string) error {
	for {
		_, err := s.Pull(ctx, SystemSpace, image, func(int64, int64) {})
		if err == nil || errors.Is(err, ErrNotFound) {
			return err
		}

		if err := timing.Pause(ctx, kube.CrashPause); err != nil {
			return err
		}
	}
}

// Fetch is pullImage that takes as long as given.
func (s *Store) Fetch(
	ctx context.Context, space Space, reference string, delay time.Duration, progress func(done, total int64),
) (string, error) {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return "", fmt.Errorf("failed to parse image reference %q: %w", reference, err)
	}

	key, digest, img := s.registries.Resolve(ref)
	stored := Stored{Key: key, Digest: digest, At: time.Now()}
	name := ref.Registry + "/" + ref.Repository
	pinned := name + "@" + digest
	tagged := name + "@" + digest

	// A reference with a digest loses its tag (distribution/reference.ParseDockerRef).
	if ref.Digest == "" {
		tagged = key
	}

	if _, ok := s.Find(space, tagged); ok {
		return pinned, nil
	}

	switch {
	case img.Missing:
		return "", fmt.Errorf("failed to pull image %q: failed to resolve reference %q: %s: %w", tagged, tagged, tagged,
			ErrNotFound)
	case img.Unavailable:
		return "", fmt.Errorf("failed to pull image %q: failed to resolve reference %q: unexpected status from HEAD "+
			"request to https://%s/v2/: 503 Service Unavailable", tagged, tagged, ref.Registry)
	}

	progress(0, stored.Size())

	if err := timing.Pause(ctx, delay); err != nil {
		return "", fmt.Errorf("failed to pull image %q: %w", tagged, err)
	}

	progress(stored.Size(), stored.Size())

	s.world.Update(func() {
		stores := s.storesOf(space)
		if stores[space] == nil {
			stores[space] = map[string]Stored{}
		}

		for _, alias := range []string{digest, tagged, pinned} {
			stores[space][alias] = stored
		}
	})

	return pinned, nil
}

// Remove forgets a name of an image; its other names stay.
func (s *Store) Remove(space Space, name string) {
	s.world.Update(func() { delete(s.storesOf(space)[space], name) })
}
