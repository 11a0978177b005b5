package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// outcome is how a boot ends.
type outcome int

const (
	rebooted outcome = iota
	poweredOff
)

// boot is everything of a machine that a reboot forgets: its API server, events,
// services, resources and running sequence.
type boot struct {
	m     *Machine
	sim   *Simulator
	power *power
	id    string
	// platformName is the hostname that the platform gives.
	platformName string
	// hostBoot is the boot id of the kernel that a container runs on, empty for the site's.
	hostBoot string
	system   system          // what was booted; never changes
	staged   string          // image of a staged upgrade that this boot is to carry out
	ctx      context.Context //nolint:containedctx // the lifetime of the boot
	cancel   context.CancelFunc
	ended    chan outcome

	events    *eventLog
	sequencer sequencer
	services  *serviceSet
	resources state.State
	server    apid
	etcd      etcdService
	apply     applyState
	lifecycle sync.Mutex  // held by the installation that a LifecycleService call runs
	rendering sync.Mutex  // serializes what follows from the configuration
	changed   timing.Bell // the active configuration changed
	rendered  timing.Bell // what the kubelet is to run with changed
	manifests timing.Bell // the bootstrap manifests were rendered
	confirmed atomic.Bool // the machine was running and ready once
	ephemeral atomic.Bool // EPHEMERAL is mounted
	synced    atomic.Bool // the time is

	// Guarded by sim.mu.
	crashed bool // the power was cut
	cluster *cluster
	trust   *certs.Authority // signs workers' certificates; set while trustd runs
	etcdUp  bool
	kubeUp  *kubeClient // set while the machine's kube-apiserver answers
	images  imageStores // of the containerd instance in memory

	staticPods map[string]*staticPodRun
	kubeletRan bool // it was started before
	kubeletRun int  // counts the starts of the kubelet; 0 while it does not run
	etcdRuns   bool // the service runs, healthy or not

	statusMu   sync.Mutex // serializes writes of MachineStatus
	lastStatus runtime.MachineStatusSpec
	published  atomic.Int64 // stage that clients see, which follows stage

	spawnMu sync.Mutex
	work    sync.WaitGroup
	over    bool

	// mu guards the fields below and nothing outside; it may be taken while sim.mu is held.
	mu         sync.Mutex
	stage      Stage
	sequence   string // of the last sequence event
	active     config.Provider
	booting    bool // active is complete, which is dear to find out
	persistent config.Provider
	kubelet    kubeletConfig
	configured chan struct{} // closed when the active configuration is complete
	apiServed  chan struct{} // closed when the first API listener is open
	ownServed  chan struct{} // closed when the configured API's listener is open
	nodeName   string        // the machine's Kubernetes node; empty until services start
	nodeSeen   bool
	nodeReady  bool

	podProblems map[string]string // of static pods' statuses, by component
}

// newBoot prepares a boot from what is on the machine's disk.
func newBoot(m *Machine, p *power) (*boot, error) {
	b := &boot{
		m: m, sim: m.sim, power: p,
		id:         uuid.NewString(),
		ended:      make(chan outcome, 1),
		events:     newEventLog(),
		configured: make(chan struct{}),
		apiServed:  make(chan struct{}),
		ownServed:  make(chan struct{}),
	}
	b.services = newServiceSet(b)
	b.resources = newResources(m.sim.catalog)

	m.sim.mu.Lock()
	if m.disk.nodeID == "" {
		m.disk.nodeID = newNodeID()
	}
	stored := m.disk.config
	m.boots++
	b.system = m.nextSystem()
	b.platformName, b.hostBoot = m.opts.Hostname, m.opts.BootID
	b.staged = m.disk.takeStaged()
	m.sim.mu.Unlock()

	if len(stored) > 0 {
		cfg, err := configloader.NewFromBytes(stored)
		if err != nil {
			return nil, fmt.Errorf("load configuration of STATE: %w", err)
		}

		b.active, b.persistent, b.booting = cfg, cfg, complete(cfg)
	}

	return b, nil
}

// run is one boot from power to the end of it.
func (b *boot) run(ctx context.Context) outcome {
	b.ctx, b.cancel = context.WithCancel(ctx)
	defer b.cancel()

	if err := b.publishHardware(); err != nil {
		b.sim.logf("%s: publish resources: %v", b.m.name, err)
	}

	b.sim.update(func() { b.m.boot, b.m.off = b, false })

	b.spawn(b.serveAPI)
	b.spawn(b.startup)

	end := poweredOff
	select {
	case end = <-b.ended:
	case <-b.ctx.Done():
	}

	b.spawnMu.Lock()
	b.over = true
	b.spawnMu.Unlock()

	b.cancel()
	b.leaveCluster()
	b.work.Wait()
	b.sim.update(func() {
		b.m.boot, b.m.off = nil, end == poweredOff
		b.power.ends = b.power.ends || end == poweredOff
	})

	if c := b.joined(); c != nil {
		c.reap()
	}

	return end
}

// end finishes the boot; the first call decides how.
func (b *boot) end(o outcome) {
	select {
	case b.ended <- o:
	default:
	}
}

// spawn runs f until the boot is over; f must end soon after its context does.
func (b *boot) spawn(f func(context.Context)) {
	b.spawnMu.Lock()
	defer b.spawnMu.Unlock()

	if b.over {
		return
	}

	b.work.Go(func() { f(b.ctx) })
}

// startup runs the sequences of a boot in Talos's order: initialize (which waits in
// maintenance mode for a configuration), install, boot.
func (b *boot) startup(ctx context.Context) {
	err := b.sequencer.run(ctx, b, "initialize", "", false, b.initialize)
	if err == nil {
		err = b.sequencer.run(ctx, b, "install", "", false, b.install)
	}

	if err == nil {
		err = b.sequencer.run(ctx, b, "boot", "", false, b.bootServices)
	}

	if err != nil && !errors.Is(err, errBootEnds) && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		b.fail(err)
	}
}

// initialize brings the API up and returns when there is a complete configuration.
func (b *boot) initialize(r *sequenceRun) error {
	early := []string{"udevd", "machined", "apid", "auditd", "syslogd", "containerd"}

	if b.m.platform == Container {
		if err := r.phase("machined", "startMachined", func(context.Context) error {
			b.services.start("apid", "machined", "containerd")

			return nil
		}); err != nil {
			return err
		}

		return r.phase("config", "loadConfig", b.loadConfig)
	}

	if err := r.phases("systemRequirements", "enforceKSPPRequirements"); err != nil {
		return err
	}

	if err := r.phase("earlyServices", "startMachined", func(context.Context) error {
		b.services.start(early...)

		return nil
	}); err != nil {
		return err
	}

	if err := r.phases("usb", "waitForUSB", "meta", "reloadMeta", "dashboard", "startDashboard"); err != nil {
		return err
	}

	return r.phase("config", "loadConfig", b.loadConfig)
}

// loadConfig returns when the machine has a complete configuration, waiting for one
// in maintenance mode if STATE holds none.
func (b *boot) loadConfig(ctx context.Context) error {
	if b.inMaintenance() {
		select {
		case <-b.apiServed:
		case <-ctx.Done():
			return ctx.Err()
		}

		b.publishTask("runningMaintenance", true, "")

		select {
		case <-b.configured:
		case <-ctx.Done():
			return ctx.Err()
		}

		b.publishTask("runningMaintenance", false, "")
	}

	return b.joinCluster()
}

// config is the active configuration, nil when there is none.
func (b *boot) config() config.Provider {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.active
}

// complete tells a configuration Talos can boot with from none or a partial one.
func complete(cfg config.Provider) bool { return cfg != nil && cfg.RawV1Alpha1() != nil }

// inMaintenance says whether the machine still waits for a complete configuration.
func (b *boot) inMaintenance() bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return !b.booting
}

// machineType is the type the configuration gives, TypeUnknown in maintenance.
func (b *boot) machineType() machine.Type {
	if b.inMaintenance() {
		return machine.TypeUnknown
	}

	return b.config().Machine().Type()
}

func (b *boot) controlPlane() bool { return b.machineType().IsControlPlane() }

// setActive makes cfg the active configuration and lets everything that depends on
// it follow: resources, certificates, and the end of maintenance mode.
func (b *boot) setActive(cfg config.Provider) error {
	b.mu.Lock()
	wasComplete, nowComplete := b.booting, complete(cfg)
	b.active, b.booting = cfg, nowComplete
	b.mu.Unlock()
	b.changed.Ring()
	b.followTime()

	if err := b.publishConfig(); err != nil {
		return err
	}

	if wasComplete {
		return b.server.renew(b)
	}

	if nowComplete {
		close(b.configured)
	}

	return nil
}

// setPersistent writes cfg to STATE, where the next boot finds it. A metal machine that
// is not installed has no STATE yet: it keeps the bytes until the installation.
func (b *boot) setPersistent(cfg config.Provider) error {
	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}

	b.mu.Lock()
	b.persistent = cfg
	b.mu.Unlock()

	b.sim.mu.Lock()
	if b.m.disk.installed && complete(cfg) {
		b.m.disk.config = data
	}
	b.sim.mu.Unlock()

	return b.publishConfig()
}
