package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// hooks keep their records as a cluster does, and log what they do with the number of machines that were rebooted
// before.
type hooks struct {
	site *site
	of   []hook.Hook
	// fail is the error of a part, such as "begin noout".
	fail func(ctx context.Context, part string) error

	mu       sync.Mutex
	log      []string
	recorded map[string]hook.Started
}

func (h *hooks) Of(m cluster.Machine, node string) []hook.Started {
	var out []hook.Started

	for _, one := range h.of {
		s := hook.Started{Hook: one, Key: one.Name}
		if one.NamesMachine() {
			s.Key, s.Machine, s.Node = one.Name+"/"+m.Name, m.Name, node
		}

		out = append(out, s)
	}

	return out
}

func (h *hooks) Recorded(context.Context) ([]hook.Started, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	return slices.Collect(maps.Values(h.recorded)), nil
}

func (h *hooks) Begin(ctx context.Context, s hook.Started, _ func(string)) error {
	h.mu.Lock()
	if h.recorded == nil {
		h.recorded = map[string]hook.Started{}
	}

	h.recorded[s.Key] = s
	h.mu.Unlock()

	return h.does(ctx, "begin "+s.Key)
}

func (h *hooks) End(ctx context.Context, s hook.Started, _ func(string)) error {
	if err := h.does(ctx, "end "+s.Key); err != nil {
		return err
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	delete(h.recorded, s.Key)

	return nil
}

func (h *hooks) does(ctx context.Context, part string) error {
	h.mu.Lock()
	h.log = append(h.log, fmt.Sprintf("%s %d", part, len(h.site.order("Reboot"))))
	h.mu.Unlock()

	if h.fail == nil {
		return nil
	}

	return h.fail(ctx, part)
}

// expect checks the log, and begins another one.
func (h *hooks) expect(want ...string) {
	h.site.t.Helper()

	h.mu.Lock()
	defer h.mu.Unlock()

	if !slices.Equal(h.log, want) {
		h.site.t.Errorf("the hooks did %q, want %q", h.log, want)
	}

	h.log = nil
}

// noout is a hook of a scope.
func noout(scope hook.Scope) hook.Hook {
	return hook.Hook{Name: "noout", Scope: scope, Before: &hook.Action{Job: "set"}, After: &hook.Action{Job: "unset"}}
}

// converges runs with hooks until the cluster is as wanted.
func (s *site) converges(h *hooks) (lifecycle.Result, error) {
	s.t.Helper()

	r := s.runner()
	r.Hooks = h

	return r.Converge(bounded(s.t), s.want)
}

// hooked is a site with a change that needs reboots.
func hooked(t *testing.T, controlPlanes, workers int, of ...hook.Hook) (*site, *hooks) {
	t.Helper()

	s := newSite(t, controlPlanes, workers, sim.Options{})
	h := &hooks{site: s, of: of}

	result, err := s.converges(h)
	if err != nil {
		t.Fatal(err)
	}

	s.record(result.Snapshot)
	h.expect() // a create takes nothing out of service

	s.reconfigure(needsReboot)

	return s, h
}

// Hooks of machines run around each reboot, and those of a rollout around all of them. A run that takes nothing out
// of service runs none.
func TestHooks_runAroundDisruptions(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		hook hook.Hook
		want []string
	}{
		"machine": {noout(hook.Machine), []string{"begin noout 0", "end noout 1", "begin noout 1", "end noout 2",
			"begin noout 2", "end noout 3"}},
		"rollout": {noout(hook.Rollout), []string{"begin noout 0", "end noout 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, h := hooked(t, 1, 2, test.hook)

			result, err := s.converges(h)
			if err != nil || result.Snapshot.Hooks == nil || len(result.Snapshot.Hooks) > 0 {
				t.Errorf("%v; begun: %v", err, result.Snapshot.Hooks)
			}

			h.expect(test.want...)

			if _, err := s.converges(h); err != nil {
				t.Error(err)
			}

			h.expect()
		})
	}
}

// Checks run before the hooks of a machine begin and after they end, because a hook may be why a check fails.
func TestHooks_endBeforeChecks(t *testing.T) {
	t.Parallel()

	s, h := hooked(t, 1, 1, noout(hook.Machine))
	asked := &checks{site: s, answer: func(int) error {
		h.mu.Lock()
		defer h.mu.Unlock()

		if len(h.recorded) > 0 {
			return errors.New("HEALTH_WARN noout flag(s) set")
		}

		return nil
	}}

	r := s.runner()
	r.Hooks, r.Checks = h, asked

	if _, err := r.Converge(bounded(t), s.want); err != nil {
		t.Error(err)
	}

	if want := []int{0, 1, 2}; !slices.Equal(asked.times, want) {
		t.Errorf("asked after %v reboots, want %v", asked.times, want)
	}

	h.expect("begin noout 0", "end noout 1", "begin noout 1", "end noout 2")
}

// Machines that are away together share a hook, which ends once the last of them is back. A hook that names its
// machine runs for each of them.
func TestHooks_ofParallelMachines(t *testing.T) {
	t.Parallel()

	of := noout(hook.Machine)
	named := hook.Hook{Name: "evict", Scope: hook.Machine, Before: &hook.Action{Job: "{{node}}"},
		After: &hook.Action{Job: "back"}}

	s, h := hooked(t, 1, 3, of, named)
	for i, m := range s.want.Machines {
		if m.Role == step.Worker {
			s.want.Machines[i].Pool = "pool"
		}
	}

	s.want.Pools = map[string]cluster.Budget{"pool": {Count: 3}}

	// No hook of all machines ends while one of them is away.
	h.fail = func(_ context.Context, part string) error {
		for _, m := range s.sim.Machines() {
			if part == "end noout" && m.Stage() != sim.StageRunning {
				t.Errorf("%s while %s is %s", part, m.Name(), m.Stage())
			}
		}

		return nil
	}

	if _, err := s.converges(h); err != nil {
		t.Fatal(err)
	}

	counts := map[string]int{}
	for _, line := range h.log {
		counts[line[:strings.LastIndex(line, " ")]]++
	}

	want := map[string]int{"begin noout": 2, "end noout": 2}
	for _, name := range []string{"cp-1", "w-1", "w-2", "w-3"} {
		want["begin evict/"+name], want["end evict/"+name] = 1, 1
	}

	if !maps.Equal(counts, want) {
		t.Errorf("the hooks did %v, want %v", counts, want)
	}
}

// A failed `before` ends the run before the machine goes, and its `after` still runs. With on_failure continue the
// run goes on, and reports it.
func TestHooks_failedBefore(t *testing.T) {
	t.Parallel()

	broken := errors.New("the server is on fire")

	for _, goesOn := range []bool{false, true} {
		t.Run(fmt.Sprint(goesOn), func(t *testing.T) {
			t.Parallel()

			of := noout(hook.Rollout)
			of.Continue = goesOn
			s, h := hooked(t, 1, 1, of)
			h.fail = func(_ context.Context, part string) error {
				if part == "begin noout" {
					return broken
				}

				return nil
			}

			result, err := s.converges(h)

			if goesOn {
				if want := []string{"hook noout: the server is on fire"}; err != nil || !slices.Equal(result.FailedHooks, want) {
					t.Errorf("%v; reported %q, want %q", err, result.FailedHooks, want)
				}

				h.expect("begin noout 0", "end noout 2")

				return
			}

			if !errors.Is(err, broken) || len(result.Snapshot.Hooks) > 0 {
				t.Errorf("ended with %v; begun: %v", err, result.Snapshot.Hooks)
			}

			h.expect("begin noout 0", "end noout 0")
		})
	}
}

// What a run could not end stays recorded, and the next run ends it: before it takes another machine out, or at its
// end where it takes none out.
func TestHooks_ofAnEarlierRun(t *testing.T) {
	t.Parallel()

	s, h := hooked(t, 1, 1, noout(hook.Rollout))
	broken := errors.New("the server is on fire")
	h.fail = func(_ context.Context, part string) error {
		if part == "end noout" {
			return broken
		}

		return nil
	}

	result, err := s.converges(h)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "the hook noout is not undone; the next apply does that") ||
		!slices.Equal(result.Snapshot.Hooks, []string{"noout"}) {
		t.Errorf("ended with %v; begun: %v", err, result.Snapshot.Hooks)
	}

	h.expect("begin noout 0", "end noout 2")

	if have := s.refreshWith(h); !slices.Equal(have.Hooks, []string{"noout"}) {
		t.Errorf("a refresh found %v", have.Hooks)
	}

	h.fail = nil

	if _, err := s.converges(h); err != nil {
		t.Error(err)
	}

	h.expect("end noout 2")

	h.recorded["noout"] = hook.Started{Hook: noout(hook.Rollout), Key: "noout"}

	s.reconfigure("machine: {env: {CHANGED: \"again\"}}")

	if _, err := s.converges(h); err != nil {
		t.Error(err)
	}

	h.expect("end noout 2", "begin noout 2", "end noout 4")

	// A removal ends it, too, and begins none.
	h.recorded["noout"] = hook.Started{Hook: noout(hook.Rollout), Key: "noout"}
	going := s.want
	going.Machines, going.Removed = nil, s.want.Machines[1:]
	going.OtherControlPlanes = s.want.Machines[:1]

	r := s.runner()
	r.Hooks = h

	if _, err := r.Remove(bounded(t), going); err != nil {
		t.Error(err)
	}

	h.expect("end noout 4")
}

func (s *site) refreshWith(h *hooks) cluster.Snapshot {
	r := s.runner()
	r.Hooks = h

	return r.Refresh(bounded(s.t), s.want)
}

// An interrupted run ends the hook whose `before` it was running.
func TestHooks_interrupted(t *testing.T) {
	t.Parallel()

	s, h := hooked(t, 1, 1, noout(hook.Rollout))
	ctx, cancel := context.WithCancel(bounded(t))
	h.fail = func(within context.Context, part string) error {
		if part == "begin noout" {
			cancel()
			<-within.Done()
		}

		return within.Err()
	}

	r := s.runner()
	r.Hooks = h

	if _, err := r.Converge(ctx, s.want); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	h.expect("begin noout 0", "end noout 0")
}

// A broken machine is repaired without hooks, and a destroy runs none.
func TestHooks_notForRepairs(t *testing.T) {
	t.Parallel()

	s, h := hooked(t, 1, 1, noout(hook.Machine))

	s.sim.Machine("w-1").Wipe()
	s.sim.Machine("w-1").PowerOn()

	if _, err := s.converges(h); err != nil {
		t.Error(err)
	}

	h.expect("begin noout 0", "end noout 1") // the control plane

	r := s.runner()
	r.Hooks = h

	if _, err := r.Teardown(bounded(t), s.want); err != nil {
		t.Error(err)
	}

	h.expect()
}
