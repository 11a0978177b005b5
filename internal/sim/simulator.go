package sim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/talosop/terraform-provider-talosop/internal/sim/addresses"
	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/controllers"
	"github.com/talosop/terraform-provider-talosop/internal/sim/diagnostics"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcdservice"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kubelet"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
	"github.com/talosop/terraform-provider-talosop/internal/sim/world"
)

// Simulator is one site of machines. All methods may be called from any goroutine.
type Simulator struct {
	opts       Options
	ctx        context.Context //nolint:containedctx // the site's own lifetime
	cancel     context.CancelFunc
	work       sync.WaitGroup
	addrs      *addresses.Block
	standIns   etcd.StandIns
	calls      *fault.Log
	faults     fault.Table
	registries *images.Registries
	catalog    state.CoreState // resource definitions and namespaces, the same for every machine
	backends   backends
	scratch    scratchFolder

	// World guards the model: machines, clusters, and what they know of each other.
	world    *world.World
	machines []*Machine
	clusters map[string][]*cluster // by the id in their configurations
	closed   bool
	kernel   string // boot id that containers share

	controlled bool // by real controllers, see HandOverWorkloads

	endpoints endpoints

	onVersions func([]Versions) // guarded by world
}

// boot is what runs on a machine between power and the end of it: what every part of it
// shares, the parts, and the place in a cluster.
type boot struct {
	*machined.Boot

	m      *Machine
	sim    *Simulator
	power  *power
	staged string // image of a staged upgrade that this boot is to carry out

	images      *images.Store
	api         *apid.Server
	kubelet     *kubelet.Kubelet
	controllers *controllers.Controllers
	diagnostics *diagnostics.Server
	etcd        *etcdservice.Service
	apply       applyState
	lifecycle   sync.Mutex // held by the installation that a LifecycleService call runs

	// Guarded by world.
	cluster   *cluster
	trust     *certs.Authority // signs workers' certificates; set while trustd runs
	kubeUp    *kube.Client     // set while the machine's kube-apiserver answers
	kubeTrust kubeTrust        // what it was started with
}

// power is one period between switching on and off.
type power struct {
	cancel context.CancelFunc
	done   chan struct{}
	// ends: the machine goes off, or is off and not everything of it has ended. Guarded by world.
	ends bool
}

// scratchFolder is a folder for files of machines' disks, made when it is first needed.
type scratchFolder struct {
	mu   sync.Mutex
	path string
}

// kubeTrust is the authority of Kubernetes that a machine signs with, and all whose certificates it takes.
type kubeTrust struct {
	issuing  []byte
	accepted [][]byte
}

// endpoints are the addresses of clusters' Kubernetes endpoints that are no machine's.
// They are virtual IPs but for the balancers. Guarded by world.
type endpoints struct {
	holders   map[netip.AddrPort]*boot // of virtual IPs
	dropped   map[netip.AddrPort]bool
	balancers map[netip.AddrPort]*process.Forwarder // nil while dropped
}

// applyState is the state of ApplyConfiguration within a boot.
type applyState struct {
	busy      sync.Mutex // held by the call that is being served
	rebooting atomic.Bool

	mu       sync.Mutex
	rollback context.CancelFunc // of a pending try
}

// cluster is the set of machines that share an id and find each other: through discovery, or through the same endpoint
// of the Kubernetes API. Two sets of one id that do neither are two clusters.
type cluster struct {
	sim     *Simulator
	world   *world.World
	members state.CoreState // the Members resource every machine of the cluster shows

	// Guarded by world.
	boots     []*boot
	discovers bool                // a machine of it used discovery
	endpoints map[string]bool     // of its machines
	locks     map[any]*sync.Mutex // the key in etcd that upgrades lock; by etcd group

	kubeMu sync.Mutex
	kube   map[any]kube.Backend // by etcd group

	applying sync.Mutex // held by the machine that creates bootstrap manifests
}

// New starts an empty site. It ends when ctx ends or Close is called, whichever is
// first; only Close waits for everything to be gone.
func New(ctx context.Context, opts Options) (*Simulator, error) {
	opts = opts.withDefaults()

	addrs, err := addresses.Claim(ctx, opts.Network, opts.Port)
	if err != nil {
		return nil, err
	}

	catalog, err := machined.NewCatalog(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register resource types: %w", err), addrs.Release())
	}

	s := &Simulator{
		opts:       opts,
		addrs:      addrs,
		catalog:    catalog,
		registries: images.NewRegistries(),
		world:      world.NewWorld(opts.Log),
		clusters:   map[string][]*cluster{},
		kernel:     uuid.NewString(),
		endpoints: endpoints{
			holders: map[netip.AddrPort]*boot{}, dropped: map[netip.AddrPort]bool{},
			balancers: map[netip.AddrPort]*process.Forwarder{},
		},
		calls: fault.NewLog(opts.OnCall, opts.Observe),
	}
	s.standIns.Take = func() (netip.Addr, error) { return addrs.Take(netip.Addr{}) }
	s.ctx, s.cancel = context.WithCancel(ctx)

	if s.backends, err = newBackends(s); err != nil {
		s.cancel()

		return nil, errors.Join(err, addrs.Release())
	}

	return s, nil
}

// TB is the part of *testing.T or *testing.B that ForTest needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// ForTest starts a site that is closed when the test ends.
func ForTest(t TB, opts Options) *Simulator {
	t.Helper()

	s, err := New(context.Background(), opts)
	if err != nil {
		t.Fatalf("start simulated site: %v", err)
	}

	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close simulated site: %v", err)
		}
	})

	return s
}

// Close switches every machine off, stops all children and servers, waits for every
// goroutine of the site and releases its addresses. Further calls return nil.
func (s *Simulator) Close() error {
	s.world.Lock()
	closed := s.closed
	s.closed = true
	s.world.Unlock()

	if closed {
		return nil
	}

	s.cancel()
	s.stopBalancers()
	s.work.Wait()

	return errors.Join(s.closeBackends(), s.scratch.remove(), s.addrs.Release())
}

// AddMachine adds a machine and, unless PoweredOff is set, switches it on. When it
// returns without error the machine answers in maintenance mode (or, with
// MachineOptions.Config, is on its way to running).
func (s *Simulator) AddMachine(ctx context.Context, opts MachineOptions) (*Machine, error) {
	m, err := s.newMachine(opts)
	if err != nil {
		return nil, err
	}

	if opts.PoweredOff {
		return m, nil
	}

	m.PowerOn()

	if len(opts.Config) > 0 {
		return m, nil
	}

	if err := m.AwaitStage(ctx, StageMaintenance); err != nil {
		return nil, fmt.Errorf("start machine %s: %w", m.Name(), err)
	}

	return m, nil
}

// AddMachines adds n machines named prefix-1 to prefix-n with otherwise equal options.
func (s *Simulator) AddMachines(ctx context.Context, prefix string, n int, opts MachineOptions) ([]*Machine, error) {
	machines := make([]*Machine, 0, n)

	for i := range n {
		o := opts
		o.Name = fmt.Sprintf("%s-%d", prefix, i+1)

		m, err := s.AddMachine(ctx, o)
		if err != nil {
			return machines, err
		}

		machines = append(machines, m)
	}

	return machines, nil
}

// Machines returns every machine in the order they were added.
func (s *Simulator) Machines() []*Machine {
	s.world.Lock()
	defer s.world.Unlock()

	return append([]*Machine(nil), s.machines...)
}

// Machine returns the machine of that name, or nil.
func (s *Simulator) Machine(name string) *Machine {
	return s.find(func(m *Machine) bool { return m.Name() == name })
}

func (s *Simulator) find(match func(*Machine) bool) *Machine {
	s.world.Lock()
	defer s.world.Unlock()

	for _, m := range s.machines {
		if match(m) {
			return m
		}
	}

	return nil
}

// Reserve takes an address of the site that no machine gets, for a server of the test.
func (s *Simulator) Reserve() (netip.Addr, error) { return s.addrs.Take(netip.Addr{}) }

// Network is the block of loopback addresses the site uses.
func (s *Simulator) Network() netip.Prefix { return s.addrs.Prefix }

// Versions are those of Kubernetes that run on a machine, with "v"; empty where the component does not run.
type Versions struct {
	Machine, Kubelet, APIServer string
}
