package sim

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

// Stage is a machine's stage as its MachineStatus resource shows it.
type Stage = runtime.MachineStage

// The stages of a machine's life. A machine that is off has StageUnknown.
const (
	StageUnknown      = runtime.MachineStageUnknown
	StageBooting      = runtime.MachineStageBooting
	StageInstalling   = runtime.MachineStageInstalling
	StageMaintenance  = runtime.MachineStageMaintenance
	StageRunning      = runtime.MachineStageRunning
	StageRebooting    = runtime.MachineStageRebooting
	StageShuttingDown = runtime.MachineStageShuttingDown
	StageResetting    = runtime.MachineStageResetting
	StageUpgrading    = runtime.MachineStageUpgrading
)

// Machine is one simulated machine. Its name and UUID never change, its address only
// with Move; what is on its disk survives reboots; everything else belongs to one boot.
type Machine struct {
	sim      *Simulator
	name     string
	addr     atomic.Pointer[netip.Addr]
	uuid     string
	platform Platform
	delays   Delays
	opts     MachineOptions

	metaMu sync.Mutex // serializes writes of META with their resources

	// Guarded by sim.mu.
	disk  disk
	boot  *boot
	power *power
	off   bool // reported as off: StageUnknown
	hang  bool // the next reboot never returns
	boots int
	// broken: the image of the container is one that does not boot.
	broken bool
	exit   int // status of the last container

	breaks map[component]bool // components of Kubernetes that crash here

	timeLost    bool // no time server answers
	crashOnJoin bool
}

// disk is what survives a reboot.
type disk struct {
	// installed: META exists on the system disk, so an applied configuration does not
	// install again. Always true in containers.
	installed bool
	// dead: the whole disk was wiped; nothing is left to boot from.
	dead bool
	// entry is what the boot loader starts by default, fallback the boot entry beside
	// it; nil when there is none.
	entry, fallback *system
	// config is /system/state/config.yaml on STATE, nil when there is none.
	config []byte
	// nodeID is the node identity on STATE.
	nodeID string
	// etcd is /var/lib/etcd on EPHEMERAL, nil when it is empty.
	etcd etcd.Node
	// snapshot is where the content of /var/lib/etcd.snapshot is, on EPHEMERAL too; empty
	// when there is none.
	snapshot string
	// cni: a pod network that Talos did not bring wrote its configuration to /etc/cni, whose
	// overlay is on EPHEMERAL.
	cni bool
	// enrolled: the kubelet's client certificate is on EPHEMERAL.
	enrolled bool
	// images are what containerd pulled to EPHEMERAL.
	images imageStores
	// meta is the values on META; no other partition's wipe touches them.
	meta map[uint8]string
}

func (s *Simulator) newMachine(opts MachineOptions) (*Machine, error) {
	addr, err := s.addrs.take(opts.Address)
	if err != nil {
		return nil, err
	}

	if opts.UUID == "" {
		opts.UUID = uuid.NewString()
	}

	if opts.TalosVersion == "" {
		opts.TalosVersion = s.opts.TalosVersion
	}

	if opts.Delays == nil {
		opts.Delays = s.opts.Delays
	}

	if opts.Disks == nil && opts.Platform == Metal {
		opts.Disks = []Disk{{Path: "/dev/sda", Size: 20 << 30, Model: "SIMDISK", Serial: opts.UUID[:8], Transport: "sata"}}
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if opts.Name == "" {
		opts.Name = fmt.Sprintf("machine-%d", len(s.machines)+1)
	}

	for _, other := range s.machines {
		if other.name == opts.Name {
			return nil, fmt.Errorf("machine %s exists already", opts.Name)
		}
	}

	m := &Machine{
		sim: s, name: opts.Name, uuid: opts.UUID, platform: opts.Platform, delays: *opts.Delays,
		opts: opts, off: true,
		disk: disk{installed: opts.Platform == Container || len(opts.Config) > 0, config: opts.Config},
	}

	m.addr.Store(&addr)

	if opts.Platform == Metal && m.disk.installed {
		sys := m.media()
		m.disk.entry = &sys
	}

	s.machines = append(s.machines, m)

	return m, nil
}

// Name is the label of the machine in calls and faults.
func (m *Machine) Name() string { return m.name }

// Address is where the machine answers.
func (m *Machine) Address() netip.Addr { return *m.addr.Load() }

// advertised is the address by which others know the machine.
func (m *Machine) advertised() netip.Addr { return m.sim.advertised(m.Address()) }

func (s *Simulator) advertised(addr netip.Addr) netip.Addr {
	if announced, ok := s.standIns.Of(addr); ok {
		return announced
	}

	if s.opts.Advertised == nil || !s.Network().Contains(addr) {
		return addr
	}

	return s.opts.Advertised(addr)
}

// Endpoint is the machine's Talos API as host:port.
func (m *Machine) Endpoint() string {
	return netip.AddrPortFrom(m.Address(), uint16(m.sim.opts.Port)).String() //nolint:gosec // a port
}

// UUID is the hardware UUID; containers do not report one.
func (m *Machine) UUID() string { return m.uuid }

// Stage is the machine's current stage; StageUnknown while it is off or between boots.
func (m *Machine) Stage() Stage {
	if b := m.current(); b != nil {
		stage, _, _ := b.status()

		return stage
	}

	return StageUnknown
}

// Ready is MachineStatus.ready together with the reasons when it is not.
func (m *Machine) Ready() (bool, []string) {
	b := m.current()
	if b == nil {
		return false, []string{"machine is off"}
	}

	_, ready, unmet := b.status()

	return ready, unmet
}

// AwaitStage returns when the machine is in the stage and tells its clients so.
func (m *Machine) AwaitStage(ctx context.Context, stage Stage) error {
	err := m.sim.await(ctx, func() bool {
		if m.boot == nil {
			return stage == StageUnknown && m.off
		}

		if m.boot.crashed {
			return false
		}

		current, _, _ := m.boot.status()

		return current == stage && Stage(m.boot.published.Load()) == stage
	})
	if err != nil {
		return fmt.Errorf("wait for stage %s of %s (now %s): %w", stage, m.name, m.Stage(), err)
	}

	return nil
}

// AwaitReady returns when the machine is running and ready.
func (m *Machine) AwaitReady(ctx context.Context) error {
	err := m.sim.await(ctx, func() bool {
		if m.boot == nil || m.boot.crashed {
			return false
		}

		stage, ready, _ := m.boot.status()

		return stage == StageRunning && ready
	})
	if err != nil {
		_, unmet := m.Ready()

		return fmt.Errorf("wait for %s to be ready (%s, %s): %w", m.name, m.Stage(), strings.Join(unmet, "; "), err)
	}

	return nil
}

// BootID is the current boot's id, empty while the machine is off. That of a container is its host's, and
// stays when it starts again.
func (m *Machine) BootID() string {
	if b := m.current(); b != nil {
		return b.kernelBoot()
	}

	return ""
}

// Boots counts how often the machine booted.
func (m *Machine) Boots() int {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	return m.boots
}

// TalosVersion is the release the machine runs or, while it is off, would boot.
func (m *Machine) TalosVersion() string { return m.system().version }

// Schematic is the Image Factory schematic of what the machine runs or, while it is
// off, would boot; empty for plain Talos.
func (m *Machine) Schematic() string { return m.system().schematic }

func (m *Machine) system() system {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	if m.boot != nil {
		return m.boot.system
	}

	return m.nextSystem()
}

// nextSystem is what a boot would start now; sim.mu is held.
func (m *Machine) nextSystem() system {
	if m.disk.entry != nil {
		return *m.disk.entry
	}

	return m.media()
}

// media is what a machine boots from that has nothing on its disk: an ISO, the network,
// or a container's image.
func (m *Machine) media() system {
	return system{version: m.opts.TalosVersion, schematic: m.opts.Schematic, bootFails: m.broken}
}

// Installed says whether Talos is on the machine's disk.
func (m *Machine) Installed() bool {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	return m.disk.installed
}

// Configured says whether the machine would boot with a configuration.
func (m *Machine) Configured() bool {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	return len(m.disk.config) > 0
}

// Hostname is the current hostname, empty in maintenance mode without one.
func (m *Machine) Hostname() string {
	if b := m.current(); b != nil {
		return b.hostname()
	}

	return ""
}

// Config returns the bytes of the active machine configuration, nil in maintenance.
func (m *Machine) Config() []byte {
	b := m.current()
	if b == nil {
		return nil
	}

	cfg := b.config()
	if cfg == nil {
		return nil
	}

	data, err := cfg.Bytes()
	if err != nil {
		return nil
	}

	return data
}

// current is the boot that the machine is in, nil while it is off, which a boot that lost its power is.
func (m *Machine) current() *boot {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	if m.boot != nil && m.boot.crashed {
		return nil
	}

	return m.boot
}
