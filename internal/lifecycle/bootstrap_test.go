package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// TestBootstrap_inFlightIsTheOnlyOne: while a slow bootstrap call runs, no other control plane is asked.
func TestBootstrap_inFlightIsTheOnlyOne(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.policy.BootTimeout = time.Millisecond

	observed := make(chan struct{})

	var reads, asked atomic.Int64

	var first atomic.Value // of string: the machine that was asked, which is the first to boot

	s.sim.SetOnCall(func(c fault.Call) error {
		switch {
		case c.Method == "Bootstrap":
			first.CompareAndSwap(nil, c.Machine)
			asked.Add(1)

			select {
			case <-observed:
			case <-t.Context().Done():
			}
		case asked.Load() > 0 && c.Machine != first.Load() && c.Method == "ServiceList":
			// The loop ran several times during the call.
			if reads.Add(1) == 5 {
				close(observed)
			}
		}

		return nil
	})
	s.create()

	if n := asked.Load(); n != 1 {
		t.Errorf("%d machines were asked to bootstrap, want 1", n)
	}
}

// TestBootstrap_withoutAnAnswerIsNotGivenToAnother: the machine accepts the call and never answers again.
func TestBootstrap_withoutAnAnswerIsNotGivenToAnother(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.policy.BootTimeout = time.Millisecond

	var (
		first atomic.Value // of string: the machine that was asked
		reads atomic.Int64 // of the other machines since then
	)

	s.sim.SetOnCall(func(c fault.Call) error {
		switch asked := first.Load(); {
		case c.Method == "Bootstrap":
			first.CompareAndSwap(nil, c.Machine)
			s.sim.Machine(c.Machine).SetFault(fault.Fault{Count: -1, DropResponse: true})
		case asked != nil && c.Machine != asked && strings.HasPrefix(c.Method, "Get"): // at least two in each observation
			reads.Add(1)
		}

		return nil
	})

	// The loop can run several times while no step runs.
	_, err := s.convergeUntil(func(e lifecycle.Event) bool {
		return e.State == lifecycle.Waiting && e.Machine == first.Load() && reads.Load() > 40
	})
	if !errors.Is(err, errNoTimeLeft) {
		t.Errorf("error %v, want a run that ran out of time", err)
	}

	for _, c := range s.sim.CallsTo("Bootstrap") {
		if c.Machine != first.Load() {
			t.Errorf("%s was asked to bootstrap after %s", c.Machine, first.Load())
		}
	}
}

// founding is what two runs of one process share.
type founding struct {
	mu sync.Mutex
	by cluster.Machine
}

func (f *founding) Founder() (cluster.Machine, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.by, f.by.Name != ""
}

func (f *founding) Claim(m cluster.Machine) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.by.Name != "" && f.by.Name != m.Name {
		return false
	}

	f.by = m

	return true
}

func (f *founding) Release(m cluster.Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.by.Name == m.Name {
		f.by = cluster.Machine{}
	}
}

// only is the spec of a resource that has one of the machines and knows others.
func (s *site) only(name string, beside ...string) cluster.Spec {
	want := s.want
	want.Machines = nil

	for _, m := range s.want.Machines {
		switch {
		case m.Name == name:
			want.Machines = append(want.Machines, m)
		case slices.Contains(beside, m.Name):
			want.OtherControlPlanes = append(want.OtherControlPlanes, m)
		}
	}

	return want
}

// TestBootstrap_byTwoRunsOfAProcess: two resources want to bootstrap and do not know each other's machine. The first
// one does, and the other one joins. After a reset, etcd can be bootstrapped again.
func TestBootstrap_byTwoRunsOfAProcess(t *testing.T) {
	t.Parallel()

	s := newSite(t, 2, 0, sim.Options{})
	shared := &founding{}

	var runs sync.WaitGroup

	for _, name := range []string{"cp-1", "cp-2"} {
		runner := s.runner()
		runner.Founding = shared

		runs.Go(func() {
			if _, err := runner.Converge(bounded(t), s.only(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}

	runs.Wait()

	if n := s.sim.EtcdClusters(); n != 1 {
		t.Errorf("%d etcd clusters, want 1", n)
	}

	if accepted := s.order("Bootstrap"); len(accepted) != 1 {
		t.Errorf("bootstraps were accepted by %v, want one", accepted)
	}

	teardown := s.runner()
	teardown.Founding = shared

	if _, err := teardown.Teardown(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	if m, ok := shared.Founder(); ok {
		t.Errorf("%s still counts as bootstrapped after its reset", m.Name)
	}
}

// configured is a machine that another client configured and that waits for a bootstrap.
func (s *site) configured(name string) lifecycle.Machine {
	s.t.Helper()

	m := s.only(name).Machines[0]
	api := s.runner().Fleet.Machine(m)

	if err := api.ApplyConfig(bounded(s.t), s.configs[name], step.Maintenance, ""); err != nil {
		s.t.Fatal(err)
	}

	err := wait.Until(bounded(s.t), 10*time.Millisecond, func(ctx context.Context) error {
		if etcd := api.Observe(ctx).EtcdService; etcd != step.ServicePreparing {
			return fmt.Errorf("etcd is %s", etcd)
		}

		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return api
}

// TestBootstrap_isCalledOffWhenAnotherBegan: between the decision and the call, a run of another process bootstraps
// another control plane.
func TestBootstrap_isCalledOffWhenAnotherBegan(t *testing.T) {
	t.Parallel()

	s := newSite(t, 2, 0, sim.Options{})
	other := s.configured("cp-1")

	runner := s.runner()
	tell := runner.Events
	runner.Events = func(e lifecycle.Event) {
		tell(e)

		if e.State == lifecycle.StepStarted && e.Step == (step.Bootstrap{Machine: "cp-2"}) {
			if err := other.Bootstrap(bounded(t)); err != nil {
				t.Error(err)
			}
		}
	}

	if _, err := runner.Converge(bounded(t), s.only("cp-2", "cp-1")); err != nil {
		t.Fatal(err)
	}

	if accepted := s.order("Bootstrap"); !slices.Equal(accepted, []string{"cp-1"}) || s.sim.EtcdClusters() != 1 {
		t.Errorf("bootstraps were accepted by %v, and there are %d etcd clusters", accepted, s.sim.EtcdClusters())
	}
}

// TestBootstrap_waitsForAControlPlaneThatFellSilent: it waited for a bootstrap in the last observation, and another
// client may have bootstrapped it since. The other control planes report that they wait, and continue once it
// answers.
func TestBootstrap_waitsForAControlPlaneThatFellSilent(t *testing.T) {
	t.Parallel()

	s := newSite(t, 2, 0, sim.Options{})
	s.configured("cp-1")

	var (
		early atomic.Int64 // bootstraps during its absence
		ready atomic.Int64 // observations since the other control plane could have been bootstrapped
		named atomic.Bool
		back  sync.Once
	)

	runner := s.runner()
	tell := runner.Events
	runner.Events = func(e lifecycle.Event) {
		tell(e)

		switch {
		case e.State == lifecycle.StepStarted && strings.HasPrefix(e.Step.String(), "apply configuration to cp-2"):
			s.sim.Machine("cp-1").PowerOff()
		case e.State == lifecycle.Waiting && e.Machine == "cp-1" && strings.Contains(e.Reason, "may already have etcd data"):
			named.Store(true)
		case e.State == lifecycle.Waiting && e.Machine == "cp-2" && strings.HasPrefix(e.Reason, "is booting") &&
			ready.Add(1) > 5:
			back.Do(func() {
				early.Store(int64(len(s.sim.CallsTo("Bootstrap"))))
				s.sim.Machine("cp-1").PowerOn()
			})
		}
	}

	if _, err := runner.Converge(bounded(t), s.only("cp-2", "cp-1")); err != nil {
		t.Fatal(err)
	}

	if early.Load() > 0 || !named.Load() || ready.Load() <= 5 {
		t.Errorf("%d bootstraps while cp-1 was away, named %t, after %d observations",
			early.Load(), named.Load(), ready.Load())
	}

	if accepted := s.order("Bootstrap"); !slices.Equal(accepted, []string{"cp-2"}) {
		t.Errorf("bootstraps were accepted by %v, want cp-2 once cp-1 was back", accepted)
	}
}
