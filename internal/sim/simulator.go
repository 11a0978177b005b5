package sim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/talosop/terraform-provider-talosop/internal/sim/addresses"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
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
