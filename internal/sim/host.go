package sim

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	clusterapi "github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/api/inspect"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"google.golang.org/grpc"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
)

// host is a boot as its parts know it: its API server, etcd, kubelet and controllers.
type host struct{ b *boot }

func (h host) Kubernetes(ctx context.Context) (*kube.Client, error) { return h.b.kubernetes(ctx) }
func (h host) AnyKubernetes() *kube.Client                          { return h.b.anyKubernetes() }
func (h host) ServedKubernetes() *kube.Client                       { return h.b.servedKubernetes() }
func (h host) Render()                                              { h.b.controllers.Render() }
func (h host) EtcdUp() bool                                         { return h.b.etcd.Up }
func (h host) Signed() bool                                         { return h.b.cluster.signs() }
func (h host) Outlive(f func())                                     { h.b.sim.work.Go(f) }

func (h host) ServeKubernetes(ctx context.Context, version string) error {
	return h.b.serveKubernetes(ctx, version)
}

func (h host) LaterRuns() bool {
	return h.b.m.boot != nil && h.b.m.boot.kubelet.Starts > 0
}

// Networked asks the control planes: their configuration alone decides on the pod network (Talos 1.14,
// controllers/k8s/control_plane.go).
func (h host) Networked() bool {
	return slices.ContainsFunc(h.b.cluster.boots,
		func(other *boot) bool { return other.ControlPlane() && other.CNIReadies() })
}

func (h host) TellVersions() { h.b.sim.tellVersions() }

func (h host) CordonTimeout() time.Duration {
	return h.b.atLeast(h.b.Delays.Cordon, realCordon)
}

func (h host) Applying() sync.Locker { return &h.b.joined().applying }

func (h host) Joined() bool                  { return h.b.cluster != nil }
func (h host) Resolve(target string) string  { return h.b.sim.resolve(target) }
func (h host) Crash()                        { h.b.m.crash() }
func (h host) Admits(client netip.Addr) bool { return h.b.m.admits(client) }

// Signer is the authority that certificates of kubelets are signed with; the world is held.
func (h host) Signer() []byte { return h.b.kubernetesSigner() }

func (h host) Trust() *certs.Authority {
	if h.b.cluster == nil {
		return nil
	}

	return h.b.cluster.trustFor(h.b)
}

func (h host) Members() state.CoreState {
	if c := h.b.joined(); c != nil && h.b.Discovery() {
		return c.members
	}

	return nil
}

func (h host) ClusterMembers() []etcd.Node { return h.b.clusterMembers() }
func (h host) TakeCrashOnJoin() bool       { return h.b.m.takeCrashOnJoin() }

func (h host) AtLeast(delay, least time.Duration) time.Duration { return h.b.atLeast(delay, least) }

// Register registers the services that Talos registers.
func (h host) Register(srv *grpc.Server, legacyMaintenance bool) {
	a := &api{Server: h.b.diagnostics, b: h.b}
	machine.RegisterMachineServiceServer(srv, a)
	storage.RegisterStorageServiceServer(srv, &storageServer{b: h.b})

	if legacyMaintenance {
		return
	}

	inspect.RegisterInspectServiceServer(srv, h.b.diagnostics)
	machine.RegisterImageServiceServer(srv, &imageServer{b: h.b})
	machine.RegisterLifecycleServiceServer(srv, &lifecycleServer{b: h.b})
	machine.RegisterDebugServiceServer(srv, machine.UnimplementedDebugServiceServer{})
	clusterapi.RegisterClusterServiceServer(srv, a)
	timeapi.RegisterTimeServiceServer(srv, &timeServer{})
}
