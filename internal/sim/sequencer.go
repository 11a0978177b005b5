package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/proto"
)

// errBootEnds is returned by the task that reboots or switches off.
var errBootEnds = errors.New("unexpected error, reboot should have happened")

// errLocked is returned when another sequence runs and may not be taken over. The RPC
// that asked has long answered OK: only an event tells.
var errLocked = errors.New("locked")

// takeOver lists, per running sequence, which others may replace it.
var takeOver = map[string][]string{
	"initialize": {"maintenanceUpgrade", "reboot", "emergencyVolumeCleanup"},
	"boot":       {"reboot", "reset", "upgrade", "emergencyVolumeCleanup"},
	"reboot":     {"reboot"},
	"reset":      {"reboot"},
}

// sequencer runs one sequence at a time.
type sequencer struct {
	mu      sync.Mutex
	running string
	cancel  context.CancelFunc
	done    chan struct{}
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

// run runs a sequence and publishes its events as Talos does: a refused one leaves a
// single event without actor id, a failed one stops normally and is then FATAL.
func (s *sequencer) run(ctx context.Context, b *boot, name, actor string, force bool, body func(*sequenceRun) error) error {
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

	r := &sequenceRun{b: b, ctx: ctx, name: name, actor: actor}
	b.publish(actor, &machine.SequenceEvent{Sequence: name, Action: machine.SequenceEvent_START})

	err = body(r)
	if err == nil {
		err = ctx.Err()
	}

	// A boot that ends here has nobody left to hear it, except with Reboot FORCE.
	if errors.Is(err, errBootEnds) {
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

// sequenceRun is one run of a sequence.
type sequenceRun struct {
	b      *boot
	ctx    context.Context //nolint:containedctx // the run is its own scope
	name   string
	actor  string
	number int
}

// phase runs one phase of one task.
func (r *sequenceRun) phase(name, task string, f func(context.Context) error) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}

	r.number++
	r.b.publish(r.actor, &machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_START})
	r.b.publishTask(task, true, r.actor)

	err := f(r.ctx)

	if errors.Is(err, errBootEnds) {
		return err
	}

	r.b.publishTask(task, false, r.actor)
	r.b.publish(r.actor, &machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_STOP})

	if err != nil {
		return fmt.Errorf("error running phase %d in %s sequence: task 1/1: failed, %w", r.number, r.name, err)
	}

	return nil
}

// phases runs phases that do nothing worth simulating, given as name, task pairs.
func (r *sequenceRun) phases(nameTask ...string) error {
	for pair := range slices.Chunk(nameTask, 2) {
		if err := r.phase(pair[0], pair[1], func(context.Context) error { return nil }); err != nil {
			return err
		}
	}

	return nil
}

// publishTask publishes the start or stop of a task.
func (b *boot) publishTask(task string, start bool, actor string) {
	action := machine.TaskEvent_STOP
	if start {
		action = machine.TaskEvent_START
	}

	b.publish(actor, &machine.TaskEvent{Task: task, Action: action})
}

// publish appends an event and derives the machine's stage from it.
func (b *boot) publish(actor string, data proto.Message) {
	b.events.publish(actor, data)

	b.mu.Lock()
	before := b.stage
	b.stage = b.nextStage(data)
	changed := b.stage != before
	after := b.stage
	b.mu.Unlock()

	if changed {
		b.sim.logf("%s: %s", b.m.name, after)
		b.refreshStatus()
	}
}

// nextStage is Talos's derivation of the stage from the event stream. b.mu is held.
func (b *boot) nextStage(data proto.Message) Stage {
	switch ev := data.(type) {
	case *machine.SequenceEvent:
		return b.stageOfSequence(ev)
	case *machine.PhaseEvent:
		if ev.GetAction() != machine.PhaseEvent_START {
			return b.stage
		}

		if b.sequence == "install" && ev.GetPhase() == "install" {
			return StageInstalling
		}

		kexecs := []string{"install", "upgrade", "stageUpgrade", "maintenanceUpgrade"}
		if slices.Contains(kexecs, b.sequence) && ev.GetPhase() == "kexec" {
			return StageRebooting
		}
	case *machine.TaskEvent:
		if ev.GetTask() != "runningMaintenance" {
			return b.stage
		}

		if ev.GetAction() == machine.TaskEvent_START {
			return StageMaintenance
		}

		return StageBooting
	}

	return b.stage
}

func (b *boot) stageOfSequence(ev *machine.SequenceEvent) Stage {
	running := b.sequence
	b.sequence = ev.GetSequence()

	switch ev.GetAction() {
	case machine.SequenceEvent_START:
		switch ev.GetSequence() {
		case "boot", "initialize":
			return StageBooting
		case "shutdown":
			return StageShuttingDown
		case "upgrade", "stageUpgrade", "maintenanceUpgrade":
			return StageUpgrading
		case "reset":
			return StageResetting
		case "reboot":
			return StageRebooting
		}
	case machine.SequenceEvent_NOOP:
		if ev.GetError().GetCode() == common.Code_FATAL && running != "shutdown" {
			return StageRebooting
		}
	case machine.SequenceEvent_STOP:
		b.sequence = ""
		if ev.GetSequence() == "boot" && ev.GetError() == nil {
			return StageRunning
		}
	}

	return b.stage
}
