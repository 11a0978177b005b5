package hosttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// The classes of storage that the host has.
const (
	// Class is the default; all nodes can use its volumes.
	Class = "standard"
	// LocalClass has volumes of the node that their pod gets, which go with it.
	LocalClass = "local"
)

// Options of a host; the zero value is one node, and stand-ins inside.
type Options struct {
	// Nodes is how many there are at first, one when zero: host-1 to host-n.
	Nodes int
	// Assets is the folder of real parts for the clusters in the pods (sim.Options.Assets); empty for stand-ins.
	Assets string
	// Delays of the machines in the pods; nil for sim.TestDelays.
	Delays *timing.Delays
}

// Host is a Kubernetes cluster whose pods can be Talos machines. All methods may be called from any goroutine.
type Host struct {
	*kubetest.Cluster

	sim *sim.Simulator
	ctx context.Context //nolint:containedctx // the host's own lifetime
	end context.CancelFunc
	log func(format string, args ...any)

	pods     corelisters.PodLister
	claims   corelisters.PersistentVolumeClaimLister
	services corelisters.ServiceLister
	backends discoverylisters.EndpointSliceLister
	objects  corelisters.NodeLister

	work sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*node
	slots map[string]*slot // of machines, by their names
	names int              // counts nodes
	given int              // counts addresses of load balancers
}

// slot is a machine with its mounts. One pod has it at a time.
type slot struct {
	machine *sim.Machine
	held    chan struct{}
	volumes map[string]string // by the labels that Talos has for them
}

// New starts a host that ends with the test. The test is skipped when the real programs are missing, or fails
// when they must not be (clitest.Asset).
func New(t testing.TB, o Options) *Host {
	t.Helper()

	kubetest.Require(t)

	h, end, err := start(context.WithoutCancel(t.Context()), t.TempDir(), t.Logf, o)

	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})

	if err != nil {
		t.Fatal(err)
	}

	return h
}

var shared kubetest.Share[*Host]

// Shared returns a host of one node that all tests of a package share: each works in separate namespaces
// (Namespace). The package has to run its tests with [Run].
func Shared(t testing.TB) *Host {
	t.Helper()

	return shared.Get(t, func(ctx context.Context, dir string, log func(string, ...any)) (*Host, func() error, error) {
		return start(ctx, dir, log, Options{})
	})
}

// Run runs the tests of a package and ends the host that they shared, if any; it panics when that cannot be ended:
//
//	func TestMain(m *testing.M) { hosttest.Run(m) }
func Run(m *testing.M) {
	kubetest.Run(m) // its code is the process's when TestMain returns

	if err := shared.End(); err != nil {
		panic(fmt.Errorf("end the shared host: %w", err))
	}
}

// start starts a cluster, and the nodes and machines of the host. The function it returns is never nil and ends all of
// it.
func start(ctx context.Context, dir string, log func(string, ...any), o Options) (*Host, func() error, error) {
	cluster, end, err := kubetest.Start(ctx, dir, log, kubetest.Options{Reserved: true})
	if err != nil {
		return nil, end, err
	}

	simulator, err := newSite(ctx, o)
	if err != nil {
		return nil, end, err
	}

	h := &Host{Cluster: cluster, sim: simulator, log: log, nodes: map[string]*node{}, slots: map[string]*slot{}}
	h.ctx, h.end = context.WithCancel(ctx)

	all := func() error {
		h.close()

		return errors.Join(simulator.Close(), end())
	}

	if err := h.begin(max(o.Nodes, 1)); err != nil {
		return nil, all, err
	}

	return h, all, nil
}

func (h *Host) close() {
	h.end()

	h.mu.Lock()
	nodes := slices.Collect(maps.Values(h.nodes))
	h.mu.Unlock()

	for _, n := range nodes {
		n.gone()
	}

	h.work.Wait()
}

// begin makes classes and nodes, and starts what looks at pods and Services.
func (h *Host) begin(nodes int) error {
	for _, class := range classes() {
		if _, err := h.API().StorageV1().StorageClasses().Create(h.ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}

	factory := informers.NewSharedInformerFactory(h.API(), 0)
	core := factory.Core().V1()
	h.pods, h.claims, h.services = core.Pods().Lister(), core.PersistentVolumeClaims().Lister(), core.Services().Lister()
	h.objects, h.backends = core.Nodes().Lister(), factory.Discovery().V1().EndpointSlices().Lister()

	if err := h.watch(core); err != nil {
		return err
	}

	factory.Start(h.ctx.Done())
	factory.WaitForCacheSync(h.ctx.Done())
	h.work.Go(func() {
		<-h.ctx.Done()
		factory.Shutdown()
	})

	for range nodes {
		if _, err := h.AddNode(h.ctx); err != nil {
			return err
		}
	}

	return nil
}

func classes() []*storagev1.StorageClass {
	reclaim, now, later := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate,
		storagev1.VolumeBindingWaitForFirstConsumer

	return []*storagev1.StorageClass{
		{
			ObjectMeta: metav1.ObjectMeta{Name: Class,
				Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
			Provisioner: "hosttest/" + Class, ReclaimPolicy: &reclaim, VolumeBindingMode: &now,
		},
		{
			ObjectMeta:  metav1.ObjectMeta{Name: LocalClass},
			Provisioner: "hosttest/" + LocalClass, ReclaimPolicy: &reclaim, VolumeBindingMode: &later,
		},
	}
}

// newSite claims addresses whose pods are in none of the networks that Kubernetes or Talos usually have.
func newSite(ctx context.Context, o Options) (*sim.Simulator, error) {
	var last error

	for range 100 {
		first := netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(90)), byte(rand.IntN(64) * 4), 0})

		simulator, err := sim.New(ctx,
			sim.Options{Assets: o.Assets, Delays: o.Delays, Network: netip.PrefixFrom(first, 22), Advertised: podAddress})
		if err == nil {
			return simulator, nil
		}

		last = err
	}

	return nil, fmt.Errorf("no free network for pods: %w", last)
}

// podNetwork is where the addresses of all pods are.
func (h *Host) podNetwork() netip.Prefix {
	first := h.sim.Network().Addr().As4()
	first[0] = 10

	return netip.PrefixFrom(netip.AddrFrom4(first), h.sim.Network().Bits())
}

// Sim is the site of the machines in the pods. Which of them run, at which addresses and with which release is the
// host's affair; faults, images and what tests look at are theirs.
func (h *Host) Sim() *sim.Simulator { return h.sim }

// Machine is the machine in a pod, nil when there never was such a pod. It stays when its pod is gone.
func (h *Host) Machine(namespace, pod string) *sim.Machine {
	return h.sim.Machine(machineName(namespace, pod))
}

// machineName of a pod's machine, which is part of paths, too.
func machineName(namespace, pod string) string { return namespace + "." + pod }

// KillPod deletes a pod without telling its containers, as a node that dies does not: they end at once, and the
// StatefulSet makes the next.
func (h *Host) KillPod(ctx context.Context, namespace, pod string) error {
	return h.API().CoreV1().Pods(namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// pace is how much faster than real ones the kubelets do what they do now and then.
const pace = 50

// scaled is a time in seconds as kubelets here take it.
func scaled(seconds int32) time.Duration { return time.Duration(seconds) * time.Second / pace }
