package talos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// imagesAPI is the part of a machine that fetches images, and records where to.
type imagesAPI struct {
	machineapi.UnimplementedMachineServiceServer

	version string
	refused error
	pulls   []string
}

func (a *imagesAPI) Version(context.Context, *emptypb.Empty) (*machineapi.VersionResponse, error) {
	return &machineapi.VersionResponse{
		Messages: []*machineapi.Version{{Version: &machineapi.VersionInfo{Tag: a.version}}}}, nil
}

// imageService is the call that came with Talos 1.13.
type imageService struct {
	machineapi.UnimplementedImageServiceServer

	api *imagesAPI
}

func (s imageService) Pull(
	request *machineapi.ImageServicePullRequest, stream machineapi.ImageService_PullServer,
) error {
	store := request.GetContainerd()
	s.api.pulls = append(s.api.pulls,
		strings.Join([]string{"Pull", store.GetDriver().String(), store.GetNamespace().String(), request.GetImageRef()}, " "))

	if s.api.refused != nil {
		return s.api.refused
	}

	return stream.Send(&machineapi.ImageServicePullResponse{
		Response: &machineapi.ImageServicePullResponse_Name{Name: request.GetImageRef() + "@sha256:1"}})
}

func (a *imagesAPI) ImagePull(
	_ context.Context, request *machineapi.ImagePullRequest,
) (*machineapi.ImagePullResponse, error) {
	a.pulls = append(a.pulls, strings.Join([]string{"ImagePull", request.GetNamespace().String(), request.GetReference()},
		" "))

	return &machineapi.ImagePullResponse{Messages: []*machineapi.ImagePull{{}}}, a.refused
}

func (a *imagesAPI) machine(t *testing.T) *Machine {
	t.Helper()

	return served(t, func(s *grpc.Server) {
		machineapi.RegisterMachineServiceServer(s, a)
		machineapi.RegisterImageServiceServer(s, imageService{api: a})
	})
}

// TestPullComponent_intoTheStoreOfTheComponent: an image that is fetched into another store than the component
// runs from is of no use, and nothing says so.
func TestPullComponent_intoTheStoreOfTheComponent(t *testing.T) {
	t.Parallel()

	tests := map[string]map[kubenames.Component]string{
		"v1.13.0": {
			kubenames.KubeAPIServer: "Pull CRI NS_CRI ", kubenames.KubeControllerManager: "Pull CRI NS_CRI ",
			kubenames.KubeScheduler: "Pull CRI NS_CRI ", kubenames.Kubelet: "Pull CRI NS_SYSTEM ",
		},
		"v1.12.6": {
			kubenames.KubeAPIServer: "ImagePull NS_CRI ", kubenames.KubeControllerManager: "ImagePull NS_CRI ",
			kubenames.KubeScheduler: "ImagePull NS_CRI ", kubenames.Kubelet: "ImagePull NS_SYSTEM ",
		},
	}
	for version, stores := range tests {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			api := &imagesAPI{version: version}
			m := api.machine(t)

			var want []string

			for component, store := range stores {
				image := "registry.k8s.io/" + string(component) + ":v1.36.2"
				want = append(want, store+image)

				if err := m.PullComponent(t.Context(), component, image); err != nil {
					t.Errorf("%s: %v", component, err)
				}
			}

			// Its pods run by the manifests, on all nodes.
			if err := m.PullComponent(t.Context(), kubenames.KubeProxy, "registry.k8s.io/kube-proxy:v1.36.2"); err != nil {
				t.Errorf("kube-proxy: %v", err)
			}

			if err := m.PullComponent(t.Context(), "etcd", "registry.k8s.io/etcd:v3.6.0"); !errors.Is(err, ErrUnsupported) ||
				!wait.IsPermanent(err) {
				t.Errorf("no component: %v", err)
			}

			if !slices.Equal(api.pulls, want) {
				t.Errorf("pulls %q, want %q", api.pulls, want)
			}
		})
	}
}

func TestPullComponent_refused(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		refused   error
		class     error
		permanent bool
	}{
		"no such image": {refused: status.Error(codes.NotFound, "error pulling image: not found"), class: ErrGone,
			permanent: true},
		"no such call": {refused: status.Error(codes.Unimplemented, "unknown method")},
		"no role for it": {refused: status.Error(codes.PermissionDenied, "not authorized"), class: ErrNotAuthorized,
			permanent: true},
		"no containerd": {refused: status.Error(codes.Unavailable, "error connecting to containerd"),
			class: ErrUnreachable},
		"a registry is down": {refused: status.Error(codes.Unknown, "failed to pull image: 502 Bad Gateway"), class: errAny},
	}
	for name, test := range tests {
		for _, version := range []string{"v1.13.0", "v1.12.6"} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()

				api := &imagesAPI{version: version, refused: test.refused}

				err := api.machine(t).PullComponent(t.Context(), kubenames.KubeAPIServer, "registry.k8s.io/kube-apiserver:v1.36.2")
				if !isClass(err, test.class) || wait.IsPermanent(err) != test.permanent {
					t.Errorf("err = %v (permanent %t), want %v", err, wait.IsPermanent(err), test.class)
				}

				if len(api.pulls) != 1 {
					t.Errorf("pulls %q, want one", api.pulls)
				}
			})
		}
	}
}
