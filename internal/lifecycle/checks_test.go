package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// checks return what a test wants, and count the machines that were rebooted before.
type checks struct {
	site   *site
	answer func(asked int) error

	mu    sync.Mutex
	times []int
}

func (c *checks) Pass(_ context.Context, waiting func(string)) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.times = append(c.times, len(c.site.order("Reboot")))
	waiting("for the health check \"ceph\": HEALTH_WARN")

	return c.answer(len(c.times))
}

// Checks run before each machine goes out of service and after the last one is back, and not at all when nothing is
// disrupted.
func TestChecks_beforeEachDisruptionAndAfterEachReturn(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 2, sim.Options{})
	asked := &checks{site: s, answer: func(int) error { return nil }}

	create := s.runner()
	create.Checks = asked

	result, err := create.Converge(bounded(t), s.want)
	if err != nil {
		t.Fatal(err)
	}

	s.record(result.Snapshot)

	if len(asked.times) > 0 {
		t.Errorf("a create asked %d times", len(asked.times))
	}

	s.reconfigure(needsReboot)

	change := s.runner()
	change.Checks = asked

	if _, err := change.Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	if want := []int{0, 1, 2, 3}; !slices.Equal(asked.times, want) {
		t.Errorf("asked after %v reboots, want %v", asked.times, want)
	}
}

// A failed check stops the rollout at any time, and the error names it. The machine that is back is uncordoned, and
// no other one goes.
func TestChecks_oneThatDoesNotPassStopsTheRollout(t *testing.T) {
	t.Parallel()

	broken := errors.New(`health check "ceph" did not pass within 5m: HEALTH_WARN`)

	for first, reboots := range map[int]int{1: 0, 2: 1, 3: 2} {
		t.Run(fmt.Sprintf("at question %d", first), func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 1, 1, sim.Options{})
			s.create()
			s.reconfigure(needsReboot)

			r := s.runner()
			r.Checks = &checks{site: s, answer: func(asked int) error {
				if asked >= first {
					return broken
				}

				return nil
			}}

			result, err := r.Converge(bounded(t), s.want)

			incomplete := (*lifecycle.IncompleteError)(nil)
			if !errors.As(err, &incomplete) || !errors.Is(err, broken) {
				t.Errorf("it ended with %v", err)
			}

			if got := len(s.order("Reboot")); got != reboots {
				t.Errorf("%d machines were rebooted, want %d", got, reboots)
			}

			for _, node := range result.Snapshot.Kubernetes.Nodes {
				if node.Unschedulable {
					t.Errorf("node %s stays cordoned", node.Name)
				}
			}

			// When it passes, the next run continues.
			if _, err := s.runner().Converge(bounded(t), s.want); err != nil || len(s.order("Reboot")) != 2 {
				t.Errorf("the next run: %v after %d reboots", err, len(s.order("Reboot")))
			}
		})
	}
}

// hanging never answers.
type hanging struct{ asked chan struct{} }

func (h hanging) Pass(ctx context.Context, waiting func(string)) error {
	waiting(`for the health check "ceph": HEALTH_WARN`)
	close(h.asked)
	<-ctx.Done()

	return context.Cause(ctx)
}

// A run that ends while it waits reports the reason.
func TestChecks_waitingIsReported(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()
	s.reconfigure(needsReboot)

	h := hanging{make(chan struct{})}
	ctx, cancel := context.WithCancel(bounded(t))
	reported := make(chan struct{})
	once := sync.OnceFunc(func() { close(reported) })

	r := s.runner()
	r.Checks = h
	r.Events = func(e lifecycle.Event) {
		if e.State == lifecycle.Waiting && strings.Contains(e.Reason, "HEALTH_WARN") {
			once()
		}
	}

	go func() {
		<-h.asked
		<-reported
		cancel()
	}()

	_, err := r.Converge(ctx, s.want)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `waits for the health check "ceph": HEALTH_WARN`) {
		t.Error(err)
	}

	if got := s.order("Reboot"); len(got) > 0 {
		t.Errorf("rebooted %v", got)
	}
}

// Checks do not hold a teardown or a removal.
func TestChecks_areNotAskedByADestroy(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()

	r := s.runner()
	r.Checks = &checks{site: s, answer: func(int) error { return errors.New("never") }}

	if _, err := r.Teardown(bounded(t), s.want); err != nil {
		t.Error(err)
	}
}
