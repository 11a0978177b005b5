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
	"testing/synctest"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// fleetInMemory are workers that reboot at once into the configuration that was staged, and their nodes.
type fleetInMemory struct {
	lifecycle.Kubernetes

	mu     sync.Mutex
	states map[string]step.MachineState
	nodes  map[string]kubestate.Node
	// rebooted are the machines in their order, and at is when.
	rebooted []string
	at       map[string]time.Time
}

type machineInMemory struct {
	lifecycle.Machine

	of   *fleetInMemory
	want cluster.Machine
}

// canarySite is a canary pool with two machines and another pool with one, all with another configuration.
func canarySite(soak time.Duration) (*fleetInMemory, cluster.Spec) {
	f := &fleetInMemory{states: map[string]step.MachineState{}, nodes: map[string]kubestate.Node{},
		at: map[string]time.Time{}}
	want := cluster.Spec{Name: "prod", NodesBecomeReady: true, Bootstrapped: true,
		Canary: cluster.Canary{Pool: "canary", Soak: soak}}

	for name, pool := range map[string]string{"a": "canary", "b": "canary", "c": "other"} {
		want.Machines = append(want.Machines, cluster.Machine{Name: name, Role: step.Worker, Pool: pool,
			Wanted: cluster.Wanted{Address: name}, Configured: cluster.Configured{ConfigDigest: "new"}})
		f.states[name] = step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true, Role: step.Worker,
			NodeName: name, ConfigDigest: "old", RebootFor: []string{"machine.sysctls"}, BootID: "first"}
		f.nodes[name] = kubestate.Node{Name: name, Ready: true, BootID: "first"}
	}

	return f, want
}

func (f *fleetInMemory) runner(checks lifecycle.Checks) *lifecycle.Runner {
	return &lifecycle.Runner{Fleet: f, Kubernetes: f, Checks: checks, Peers: alone{}, Policy: cluster.DefaultPolicy(),
		Interval: 10 * time.Second, Configs: map[string][]byte{"a": nil, "b": nil, "c": nil}}
}

func (f *fleetInMemory) Machine(m cluster.Machine) lifecycle.Machine {
	return machineInMemory{of: f, want: m}
}

// withinHours bounds a run that waits for what does not happen.
func withinHours(t *testing.T) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	t.Cleanup(cancel)

	return ctx
}

// answers take a moment of the simulated clock, which stands still otherwise.
func answers() { <-time.After(time.Millisecond) }

// alone is a run without others. A moment passes before each observation.
type alone struct{}

func (a alone) Enter(cluster.Standing) lifecycle.Peer { return a }

func (alone) Tell(cluster.Standing) {}

func (alone) Others() cluster.Standing {
	answers()

	return cluster.Standing{}
}

func (alone) Leave() {}

func (f *fleetInMemory) Observe(context.Context) kubestate.State {
	answers()
	f.mu.Lock()
	defer f.mu.Unlock()

	state := kubestate.State{Reachable: true}
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		state.Nodes = append(state.Nodes, f.nodes[name])
	}

	return state
}

// node changes a node.
func (f *fleetInMemory) node(name string, change func(*kubestate.Node)) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	n := f.nodes[name]
	change(&n)
	f.nodes[name] = n

	return nil
}

func (f *fleetInMemory) Cordon(_ context.Context, node string) error {
	return f.node(node, func(n *kubestate.Node) { n.Unschedulable, n.Cordoned = true, true })
}

func (f *fleetInMemory) Uncordon(_ context.Context, node string) error {
	return f.node(node, func(n *kubestate.Node) { n.Unschedulable, n.Cordoned = false, false })
}

func (f *fleetInMemory) NoteSoak(_ context.Context, node string, soak kubestate.Soak) error {
	return f.node(node, func(n *kubestate.Node) { n.Soak = soak })
}

func (f *fleetInMemory) Drain(context.Context, string, cluster.DrainPolicy, func(string)) error {
	return nil
}

func (m machineInMemory) Observe(context.Context) step.MachineState {
	answers()
	m.of.mu.Lock()
	defer m.of.mu.Unlock()

	return m.of.states[m.want.Name]
}

func (m machineInMemory) StageConfig(context.Context, []byte, string) error { return nil }

func (m machineInMemory) Reboot(context.Context, string) error {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()

	s := m.of.states[m.want.Name]
	s.ConfigDigest, s.RebootFor, s.BootID = "new", nil, "second"
	m.of.states[m.want.Name] = s
	m.of.rebooted, m.of.at[m.want.Name] = append(m.of.rebooted, m.want.Name), time.Now()

	return nil
}

// passing are checks that say when they ran, and answer by the time since their first run.
type passing struct {
	began time.Time
	times int
	fails func(since time.Duration) error
}

func (p *passing) Pass(context.Context, func(string)) error {
	if p.times++; p.began.IsZero() {
		p.began = time.Now()
	}

	if p.fails == nil {
		return nil
	}

	return p.fails(time.Since(p.began))
}

// The other pool follows half an hour after the last canary machine is back, and not before. The checks run all the
// while, and nothing of the soak stays on the nodes.
func TestSoak_delaysTheOthers(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		f, want := canarySite(30 * time.Minute)
		checks := &passing{}

		if _, err := f.runner(checks).Converge(withinHours(t), want); err != nil {
			t.Fatal(err)
		}

		if got := strings.Join(f.rebooted, " "); got != "a b c" {
			t.Errorf("rebooted in the order %s", got)
		}

		if soak := f.at["c"].Sub(f.at["b"]); soak < 30*time.Minute || soak > 32*time.Minute {
			t.Errorf("the other pool followed after %s", soak)
		}

		if checks.times < 30 {
			t.Errorf("the checks ran %d times", checks.times)
		}

		for name, n := range f.nodes {
			if n.Soak != (kubestate.Soak{}) || n.Unschedulable {
				t.Errorf("node %s is left with %+v", name, n)
			}
		}
	})
}

// A canary machine or a check that fails during the soak ends the run at once. No other machine was touched, and the
// next run begins the soak again.
func TestSoak_failureEndsTheRollout(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		breaks func(f *fleetInMemory)
		fails  func(since time.Duration) error
		want   string
	}{
		"node not ready": {want: "b its node b is not Ready yet", breaks: func(f *fleetInMemory) {
			_ = f.node("b", func(n *kubestate.Node) { n.Ready = false })
		}},
		"reboot": {want: "b rebooted", breaks: func(f *fleetInMemory) { _ = f.node("b", func(n *kubestate.Node) { n.BootID = "third" }) }},
		"silence": {want: "b does not respond", breaks: func(f *fleetInMemory) {
			f.become("b", func(s *step.MachineState) { *s = step.MachineState{Access: step.Unreachable} })
		}},
		"check": {want: "HEALTH_WARN", breaks: func(*fleetInMemory) {}, fails: func(since time.Duration) error {
			if since < 10*time.Minute {
				return nil
			}

			return errors.New("HEALTH_WARN")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				f, want := canarySite(30 * time.Minute)
				time.AfterFunc(10*time.Minute, func() { test.breaks(f) })

				begun := time.Now()
				_, err := f.runner(&passing{fails: test.fails}).Converge(withinHours(t), want)

				if text := fmt.Sprint(err); !strings.Contains(text, "canary pool failed") || !strings.Contains(text, test.want) {
					t.Errorf("the run ended with %v", err)
				}

				if took := time.Since(begun); took > 15*time.Minute || slices.Contains(f.rebooted, "c") {
					t.Errorf("it took %s, and rebooted %v", took, f.rebooted)
				}

				f.become("b", func(s *step.MachineState) {
					*s = f.states["a"]
					s.NodeName = "b"
				})
				_ = f.node("b", func(n *kubestate.Node) { n.Ready = true })

				again := time.Now()

				if _, err := f.runner(nil).Converge(withinHours(t), want); err != nil {
					t.Fatal(err)
				}

				if soak := f.at["c"].Sub(again); soak < 30*time.Minute {
					t.Errorf("the next run soaked for %s", soak)
				}
			})
		})
	}
}

// become changes a machine.
func (f *fleetInMemory) become(name string, change func(*step.MachineState)) {
	f.mu.Lock()
	defer f.mu.Unlock()

	s := f.states[name]
	change(&s)
	f.states[name] = s
}

// A machine that is silent for a moment, as while a switch restarts, does not end the soak.
func TestSoak_toleratesAMoment(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		f, want := canarySite(30 * time.Minute)

		var before step.MachineState

		time.AfterFunc(10*time.Minute, func() {
			f.become("b", func(s *step.MachineState) {
				before = *s
				*s = step.MachineState{Access: step.Unreachable}
			})
		})
		time.AfterFunc(11*time.Minute, func() { f.become("b", func(s *step.MachineState) { *s = before }) })

		if _, err := f.runner(nil).Converge(withinHours(t), want); err != nil {
			t.Fatal(err)
		}
	})
}

// The run after one that ended within the soak waits for the rest of it, and one that comes later does not wait.
func TestSoak_continuesAfterAnInterrupt(t *testing.T) {
	t.Parallel()

	for pause, rest := range map[time.Duration]time.Duration{0: 20 * time.Minute, 5 * time.Minute: 15 * time.Minute,
		time.Hour: 0} {
		t.Run(pause.String(), func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				f, want := canarySite(30 * time.Minute)

				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()

				if _, err := f.runner(nil).Converge(ctx, want); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the run ended with %v", err)
				}

				<-time.After(pause) // of the simulated clock

				again := time.Now()

				if _, err := f.runner(nil).Converge(withinHours(t), want); err != nil {
					t.Fatal(err)
				}

				if soak := f.at["c"].Sub(again); soak < rest-time.Minute || soak > rest+time.Minute {
					t.Errorf("the next run soaked for %s, want %s", soak, rest)
				}
			})
		})
	}
}

// A run that ended between the change and the soak does not skip it.
func TestSoak_isNotSkippedAfterAKill(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		f, want := canarySite(30 * time.Minute)

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		first := f.runner(nil)
		first.Events = func(e lifecycle.Event) {
			if e.State == lifecycle.StepFinished && e.Machine == "b" {
				cancel()
			}
		}

		if _, err := first.Converge(ctx, want); err == nil {
			t.Fatal("the run was not interrupted")
		}

		again := time.Now()

		if _, err := f.runner(nil).Converge(withinHours(t), want); err != nil {
			t.Fatal(err)
		}

		if soak := f.at["c"].Sub(again); soak < 30*time.Minute {
			t.Errorf("the next run soaked for %s", soak)
		}
	})
}
