package sim

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
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
	*machined.Hardware

	sim  *Simulator
	opts MachineOptions

	// Guarded by world.
	boot  *boot
	power *power
	off   bool // reported as off: StageUnknown
	hang  bool // the next reboot never returns
	boots int
	// broken: the image of the container is one that does not boot.
	broken bool
	exit   int // status of the last container

	crashOnJoin bool
	// unready are the readiness checks that fail at its stand-in for kube-apiserver.
	unready []string
	// admitted are the machines that its configured API lets in; nil is everybody.
	admitted []*Machine
}

func (s *Simulator) newMachine(opts MachineOptions) (*Machine, error) {
	addr, err := s.addrs.Take(opts.Address)
	if err != nil {
		return nil, err
	}

	if opts.UUID == "" {
		opts.UUID = uuid.NewString()
	}

	opts.TalosVersion = cmp.Or(opts.TalosVersion, s.opts.TalosVersion)

	if opts.Delays == nil {
		opts.Delays = s.opts.Delays
	}

	if opts.Disks == nil && opts.Platform == machined.Metal {
		opts.Disks = []machined.Disk{{Path: "/dev/sda", Size: 20 << 30, Model: "SIMDISK", Serial: opts.UUID[:8],
			Transport: "sata"}}
	}

	s.world.Lock()
	defer s.world.Unlock()

	if opts.Name == "" {
		opts.Name = fmt.Sprintf("machine-%d", len(s.machines)+1)
	}

	for _, other := range s.machines {
		if other.Name() == opts.Name {
			return nil, fmt.Errorf("machine %s exists already", opts.Name)
		}
	}

	m := &Machine{
		Hardware: machined.NewHardware(s.world, machined.Description{
			Name: opts.Name, UUID: opts.UUID, Address: addr, Port: s.opts.Port, Platform: opts.Platform, Delays: *opts.Delays,
			Disks: opts.Disks, Extensions: s.opts.Extensions, Advertise: s.advertised, Config: opts.Config,
		}),
		sim: s, opts: opts, off: true,
	}

	if opts.Platform == machined.Metal && m.Disk.Installed {
		sys := m.media()
		m.Disk.Entry = &sys
	}

	s.machines = append(s.machines, m)

	return m, nil
}

func (s *Simulator) advertised(addr netip.Addr) netip.Addr {
	if announced, ok := s.standIns.Of(addr); ok {
		return announced
	}

	if s.opts.Advertised == nil || !s.Network().Contains(addr) {
		return addr
	}

	return s.opts.Advertised(addr)
}

// Stage is the machine's current stage; StageUnknown while it is off or between boots.
func (m *Machine) Stage() Stage {
	if b := m.current(); b != nil {
		stage, _, _ := b.Status()

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

	_, ready, unmet := b.Status()

	return ready, unmet
}

// AwaitStage returns when the machine is in the stage and reports it to its clients.
func (m *Machine) AwaitStage(ctx context.Context, stage Stage) error {
	err := m.World.Await(ctx, func() bool {
		if m.boot == nil {
			return stage == StageUnknown && m.off
		}

		if m.boot.Crashed {
			return false
		}

		current, _, _ := m.boot.Status()

		return current == stage && Stage(m.boot.Published.Load()) == stage
	})
	if err != nil {
		return fmt.Errorf("wait for stage %s of %s (now %s): %w", stage, m.Name(), m.Stage(), err)
	}

	return nil
}

// AwaitReady returns when the machine is running and ready.
func (m *Machine) AwaitReady(ctx context.Context) error {
	err := m.World.Await(ctx, func() bool {
		if m.boot == nil || m.boot.Crashed {
			return false
		}

		stage, ready, _ := m.boot.Status()

		return stage == StageRunning && ready
	})
	if err != nil {
		_, unmet := m.Ready()

		return fmt.Errorf("wait for %s to be ready (%s, %s): %w", m.Name(), m.Stage(), strings.Join(unmet, "; "), err)
	}

	return nil
}

// BootID is the current boot's id, empty while the machine is off. That of a container is its host's, and
// stays when it starts again.
func (m *Machine) BootID() string {
	if b := m.current(); b != nil {
		return b.KernelBoot()
	}

	return ""
}

// Boots counts how often the machine booted.
func (m *Machine) Boots() int {
	m.World.Lock()
	defer m.World.Unlock()

	return m.boots
}

// TalosVersion is the release the machine runs or, while it is off, would boot.
func (m *Machine) TalosVersion() string { return m.system().Version }

// APIServerStarts counts how often kube-apiserver started in this boot.
func (m *Machine) APIServerStarts() int {
	m.World.Lock()
	defer m.World.Unlock()

	if m.boot == nil {
		return 0
	}

	return m.boot.kubelet.APIServerStarts
}

// Schematic is the Image Factory schematic of what the machine runs or, while it is
// off, would boot; empty for plain Talos.
func (m *Machine) Schematic() string { return m.system().Schematic }

func (m *Machine) system() images.System {
	m.World.Lock()
	defer m.World.Unlock()

	if m.boot != nil {
		return m.boot.System
	}

	return m.nextSystem()
}

// nextSystem is the system that a boot would start now; world is held.
func (m *Machine) nextSystem() images.System {
	if entry := m.Disk.Boots(); entry != nil {
		return *entry
	}

	return m.media()
}

// media is what a machine boots from that has nothing on its disk: an ISO, the network,
// or a container's image.
func (m *Machine) media() images.System {
	return images.System{Version: m.opts.TalosVersion, Schematic: m.opts.Schematic, BootFails: m.broken}
}

// Hostname is the current hostname, empty in maintenance mode without one.
func (m *Machine) Hostname() string {
	if b := m.current(); b != nil {
		return b.Hostname()
	}

	return ""
}

// Config returns the bytes of the active machine configuration, nil in maintenance.
func (m *Machine) Config() []byte {
	b := m.current()
	if b == nil {
		return nil
	}

	cfg := b.Config()
	if cfg == nil {
		return nil
	}

	data, err := cfg.Bytes()
	if err != nil {
		return nil
	}

	return data
}

// WriteLog lets a program of the machine write a line: a service, dmesg, or a container of a static pod. A machine that
// is off writes nothing.
func (m *Machine) WriteLog(log, line string) {
	if b := m.current(); b != nil {
		b.diagnostics.Write(log, line)
	}
}

// current is the boot that the machine is in, nil while it is off, which a boot that lost its power is.
func (m *Machine) current() *boot {
	m.World.Lock()
	defer m.World.Unlock()

	if m.boot != nil && m.boot.Crashed {
		return nil
	}

	return m.boot
}
