package machined

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/protobuf/proto"
)

// ErrBootEnds is returned by the task that reboots or switches off.
var ErrBootEnds = errors.New("unexpected error, reboot should have happened")

// errLocked is returned when another sequence runs and may not be taken over. The RPC
// that asked has long answered OK: only an event shows that.
var errLocked = errors.New("locked")

// takeOver lists, per running sequence, which others may replace it.
var takeOver = map[string][]string{
	"initialize": {"maintenanceUpgrade", "reboot", "emergencyVolumeCleanup"},
	"boot":       {"reboot", "reset", "upgrade", "emergencyVolumeCleanup"},
	"reboot":     {"reboot"},
	"reset":      {"reboot"},
}

// acquire makes name the running sequence, stopping another one if that is allowed.
func (s *sequencer) acquire(ctx context.Context, name string, force bool) (context.Context, func(), error) {
	for {
		s.mu.Lock()

		if s.running == "" {
			ctx, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			s.running, s.cancel, s.done = name, cancel, done
			s.mu.Unlock()

			return ctx, func() {
				s.mu.Lock()
				s.running = ""
				s.mu.Unlock()
				cancel()
				close(done)
			}, nil
		}

		if !force && !slices.Contains(takeOver[s.running], name) {
			s.mu.Unlock()

			return nil, nil, errLocked
		}

		s.cancel()
		done := s.done
		s.mu.Unlock()

		select {
		case <-done:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// Run runs a sequence and publishes its events as Talos does: a refused one leaves a
// single event without actor id, a failed one stops normally and is then FATAL.
func (s *sequencer) Run(
	ctx context.Context, b *Boot, name, actor string, force bool, body func(*SequenceRun) error,
) error {
	ctx, release, err := s.acquire(ctx, name, force)
	if errors.Is(err, errLocked) {
		b.publish("", &machine.SequenceEvent{
			Sequence: name, Action: machine.SequenceEvent_NOOP,
			Error: &common.Error{Code: common.Code_LOCKED, Message: "sequence not started: " + errLocked.Error()},
		})
	}

	if err != nil {
		return err
	}
	defer release()

	r := &SequenceRun{b: b, Ctx: ctx, name: name, Actor: actor}
	b.publish(actor, &machine.SequenceEvent{Sequence: name, Action: machine.SequenceEvent_START})

	err = body(r)
	if err == nil {
		err = ctx.Err()
	}

	// A boot that ends here reports to no client any more, except with Reboot FORCE.
	if errors.Is(err, ErrBootEnds) {
		return err
	}

	b.publish(actor, &machine.SequenceEvent{Sequence: name, Action: machine.SequenceEvent_STOP})

	if err != nil {
		code := common.Code_FATAL
		if errors.Is(err, context.Canceled) {
			code = common.Code_CANCELED
		}

		b.publish(actor, &machine.SequenceEvent{
			Sequence: name, Action: machine.SequenceEvent_NOOP,
			Error: &common.Error{Code: code, Message: "sequence failed: " + err.Error()},
		})
	}

	return err
}

// SequenceRun is one run of a sequence.
type SequenceRun struct {
	b      *Boot
	Ctx    context.Context //nolint:containedctx // the run is its own scope
	name   string
	Actor  string
	number int
}

// Phase runs one phase of one task.
func (r *SequenceRun) Phase(name, task string, f func(context.Context) error) error {
	if err := r.Ctx.Err(); err != nil {
		return err
	}

	r.number++
	r.b.publish(r.Actor, &machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_START})
	r.b.PublishTask(task, true, r.Actor)

	err := f(r.Ctx)

	if errors.Is(err, ErrBootEnds) {
		return err
	}

	r.b.PublishTask(task, false, r.Actor)
	r.b.publish(r.Actor, &machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_STOP})

	if err != nil {
		return fmt.Errorf("error running phase %d in %s sequence: task 1/1: failed, %w", r.number, r.name, err)
	}

	return nil
}

// Phases runs phases that do nothing worth simulating, given as name, task pairs.
func (r *SequenceRun) Phases(nameTask ...string) error {
	for pair := range slices.Chunk(nameTask, 2) {
		if err := r.Phase(pair[0], pair[1], func(context.Context) error { return nil }); err != nil {
			return err
		}
	}

	return nil
}

// PublishTask publishes the start or stop of a task.
func (b *Boot) PublishTask(task string, start bool, actor string) {
	action := machine.TaskEvent_STOP
	if start {
		action = machine.TaskEvent_START
	}

	b.publish(actor, &machine.TaskEvent{Task: task, Action: action})
}

// publish appends an event and derives the machine's stage from it.
func (b *Boot) publish(actor string, data proto.Message) {
	b.Events.publish(actor, data)

	b.Mu.Lock()
	before := b.stage
	b.stage = b.nextStage(data)
	changed := b.stage != before
	after := b.stage
	b.Mu.Unlock()

	if changed {
		b.World.Logf("%s: %s", b.name, after)
		b.RefreshStatus()
	}
}

// nextStage is Talos's derivation of the stage from the event stream. b.mu is held.
func (b *Boot) nextStage(data proto.Message) runtime.MachineStage {
	switch ev := data.(type) {
	case *machine.SequenceEvent:
		return b.stageOfSequence(ev)
	case *machine.PhaseEvent:
		if ev.GetAction() != machine.PhaseEvent_START {
			return b.stage
		}

		if b.sequence == "install" && ev.GetPhase() == "install" {
			return runtime.MachineStageInstalling
		}

		kexecs := []string{"install", "upgrade", "stageUpgrade", "maintenanceUpgrade"}
		if slices.Contains(kexecs, b.sequence) && ev.GetPhase() == "kexec" {
			return runtime.MachineStageRebooting
		}
	case *machine.TaskEvent:
		if ev.GetTask() != "runningMaintenance" {
			return b.stage
		}

		if ev.GetAction() == machine.TaskEvent_START {
			return runtime.MachineStageMaintenance
		}

		return runtime.MachineStageBooting
	}

	return b.stage
}

func (b *Boot) stageOfSequence(ev *machine.SequenceEvent) runtime.MachineStage {
	running := b.sequence
	b.sequence = ev.GetSequence()

	switch ev.GetAction() {
	case machine.SequenceEvent_START:
		switch ev.GetSequence() {
		case "boot", "initialize":
			return runtime.MachineStageBooting
		case "shutdown":
			return runtime.MachineStageShuttingDown
		case "upgrade", "stageUpgrade", "maintenanceUpgrade":
			return runtime.MachineStageUpgrading
		case "reset":
			return runtime.MachineStageResetting
		case "reboot":
			return runtime.MachineStageRebooting
		}
	case machine.SequenceEvent_NOOP:
		if ev.GetError().GetCode() == common.Code_FATAL && running != "shutdown" {
			return runtime.MachineStageRebooting
		}
	case machine.SequenceEvent_STOP:
		b.sequence = ""
		if ev.GetSequence() == "boot" && ev.GetError() == nil {
			return runtime.MachineStageRunning
		}
	}

	return b.stage
}

// Reboot ends the boot from a sequence's last phase.
func (r *SequenceRun) Reboot() error {
	return r.Phase("reboot", "reboot", func(context.Context) error {
		r.b.end(Rebooted)

		return ErrBootEnds
	})
}

// Shutdown ends the boot and leaves the machine off.
func (r *SequenceRun) Shutdown() error {
	return r.Phase("shutdown", "shutdown", func(context.Context) error {
		r.b.end(PoweredOff)

		return ErrBootEnds
	})
}

// StartSequence runs a sequence that an RPC asked for. The RPC does not wait for it,
// and whether it was allowed to start shows only in the events.
func (b *Boot) StartSequence(name, actor string, force bool, body func(*SequenceRun) error) {
	b.Spawn(func(ctx context.Context) {
		err := b.Sequencer.Run(ctx, b, name, actor, force, body)

		switch {
		case err == nil, errors.Is(err, ErrBootEnds), errors.Is(err, context.Canceled):
		case errors.Is(err, errLocked):
			b.World.Logf("%s: %s refused: another sequence runs", b.name, name)
		default:
			b.Fail(err)
		}
	})
}
