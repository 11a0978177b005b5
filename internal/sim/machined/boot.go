// Package machined is what the parts of a simulated boot share, as the parts of machined do: the machine and its
// disk, META, configuration and resources. Events, services, sequences, stage and readiness follow from them.
package machined

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Outcome is how a boot ends.
type Outcome int

// The ends of a boot.
const (
	Rebooted Outcome = iota
	PoweredOff
)

// Boot is everything of a machine that a reboot forgets and that the parts of a boot share:
// the configuration, events, services, resources and the running sequence.
type Boot struct {
	*Hardware

	site context.Context //nolint:containedctx // the lifetime of the site
	ID   string
	// platformName is the hostname from the platform.
	platformName string
	// kernel is the boot id of the kernel that a container runs on.
	kernel string
	System images.System   // what was booted; never changes
	Ctx    context.Context //nolint:containedctx // the lifetime of the boot
	cancel context.CancelFunc
	Ended  chan Outcome

	Events    *eventLog
	Sequencer sequencer
	Services  *serviceSet
	Resources state.State
	Renew     func() error    // lets the API's certificate follow the configuration
	Changed   timing.Notifier // the active configuration changed
	confirmed atomic.Bool     // the machine was running and ready once
	Ephemeral atomic.Bool     // EPHEMERAL is mounted
	Synced    atomic.Bool     // the time is

	Crashed bool // the power was cut; guarded by world

	statusMu   sync.Mutex // serializes writes of MachineStatus
	lastStatus runtime.MachineStatusSpec
	Published  atomic.Int64 // stage that clients see, which follows stage

	spawnMu sync.Mutex
	Work    sync.WaitGroup
	over    bool

	// Mu guards the fields below and nothing outside; it may be taken while the world is locked.
	Mu         sync.Mutex
	stage      runtime.MachineStage
	sequence   string // of the last sequence event
	active     config.Provider
	booting    bool // active is complete, which is dear to find out
	persistent config.Provider
	Configured chan struct{} // closed when the active configuration is complete
	NodeName   string        // the machine's Kubernetes node; empty until services start
	nodeSeen   bool
	nodeReady  bool

	PodProblems map[string]string // of static pods' statuses, by component
}

// sequencer runs one sequence at a time.
type sequencer struct {
	mu      sync.Mutex
	running string
	cancel  context.CancelFunc
	done    chan struct{}
}

// NewBoot prepares a boot of a system from what is on the machine's disk.
func NewBoot(
	site context.Context, m *Hardware, resources state.State, sys images.System, platformName, kernel string,
) (*Boot, error) {
	b := &Boot{
		Hardware: m, site: site, ID: uuid.NewString(), platformName: platformName, kernel: kernel, System: sys,
		Ended: make(chan Outcome, 1), Events: newEventLog(), Resources: resources, Configured: make(chan struct{}),
	}
	b.Services = newServiceSet(b)

	m.World.Lock()
	if m.Disk.NodeID == "" {
		m.Disk.NodeID = newNodeID()
	}
	stored := m.Disk.Config
	m.World.Unlock()

	if len(stored) > 0 {
		cfg, err := configloader.NewFromBytes(stored)
		if err != nil {
			return nil, fmt.Errorf("load configuration of STATE: %w", err)
		}

		b.active, b.persistent, b.booting = cfg, cfg, Complete(cfg)
	}

	return b, nil
}

// Begin starts the lifetime of the boot; what it returns ends it.
func (b *Boot) Begin(ctx context.Context) context.CancelFunc {
	b.Ctx, b.cancel = context.WithCancel(ctx)

	return b.cancel
}

// SetOn makes the boot the one that the machine is in, or that it was in; the world is locked.
func (b *Boot) SetOn(on bool) {
	b.Hardware.boot = nil
	if on {
		b.Hardware.boot = b
	}
}

// Close ends the lifetime of the boot: nothing is spawned any more.
func (b *Boot) Close() {
	b.spawnMu.Lock()
	b.over = true
	b.spawnMu.Unlock()

	b.cancel()
}

// end finishes the boot; the first call decides how.
func (b *Boot) end(o Outcome) {
	select {
	case b.Ended <- o:
	default:
	}
}

// Spawn runs f until the boot is over; f must end soon after its context does.
func (b *Boot) Spawn(f func(context.Context)) {
	b.spawnMu.Lock()
	defer b.spawnMu.Unlock()

	if b.over {
		return
	}

	b.Work.Go(func() { f(b.Ctx) })
}

// Alive is false once the power was cut: what a machine would do then it no longer does.
func (b *Boot) Alive() bool {
	b.World.Lock()
	defer b.World.Unlock()

	return !b.Crashed
}

// PoweredOn is false once the power was cut or the site is closed.
func (b *Boot) PoweredOn() bool {
	b.World.Lock()
	defer b.World.Unlock()

	return !b.Crashed && b.site.Err() == nil
}

// Site is the lifetime of the site, which a boot does not end.
func (b *Boot) Site() context.Context { return b.site }
