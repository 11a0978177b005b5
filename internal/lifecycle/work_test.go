package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// workers are machines that all accept their configuration at the same moment.
type workers struct {
	lifecycle.Kubernetes

	all      sync.WaitGroup
	observed atomic.Int64
	mu       sync.Mutex
	nodes    []kubestate.Node
}

type worker struct {
	lifecycle.Machine

	of   *workers
	want cluster.Machine
}

func (w *workers) Machine(m cluster.Machine) lifecycle.Machine { return worker{of: w, want: m} }

func (w *workers) Observe(context.Context) kubestate.State {
	w.mu.Lock()
	defer w.mu.Unlock()

	return kubestate.State{Reachable: true, Nodes: w.nodes}
}

func (m worker) Observe(context.Context) step.MachineState {
	m.of.observed.Add(1)
	m.of.mu.Lock()
	defer m.of.mu.Unlock()

	for _, n := range m.of.nodes {
		if n.Name == m.want.Name {
			return step.MachineState{
				Access: step.Member, Stage: step.StageRunning, Ready: true, Role: step.Worker, NodeName: n.Name,
				ConfigDigest: m.want.ConfigDigest,
			}
		}
	}

	return step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance}
}

func (m worker) ApplyConfig(context.Context, []byte, step.Access, string) error {
	m.of.all.Done()
	m.of.all.Wait()
	m.register()

	return nil
}

// register adds the node of a machine to Kubernetes.
func (m worker) register() {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()

	m.of.nodes = append(m.of.nodes, kubestate.Node{Name: m.want.Name, Ready: true})
}

// many are workers that wait for their configurations.
func many(machines int) (want cluster.Spec, configs map[string][]byte) {
	want, configs = cluster.Spec{Name: "prod", NodesBecomeReady: true, Bootstrapped: true}, map[string][]byte{}

	for i := range machines {
		m := cluster.Machine{Name: fmt.Sprintf("w-%02d", i), Role: step.Worker,
			Wanted:     cluster.Wanted{Address: fmt.Sprintf("10.0.0.%d", i)},
			Configured: cluster.Configured{ConfigDigest: "new"}}
		want.Machines, configs[m.Name] = append(want.Machines, m), []byte("config")
	}

	return want, configs
}

// Steps that end together are recorded together: the machines are not all asked again after each step.
func TestRunner_observesOnceForStepsThatEndTogether(t *testing.T) {
	t.Parallel()

	const machines = 30

	site := &workers{}
	site.all.Add(machines)

	want, configs := many(machines)
	runner := &lifecycle.Runner{Fleet: site, Kubernetes: site, Configs: configs, Policy: cluster.DefaultPolicy(),
		Interval: time.Second}

	result, err := runner.Converge(bounded(t), want)
	if err != nil || len(result.Done) != machines {
		t.Fatalf("%d steps were done: %v", len(result.Done), err)
	}

	// Once before, once after, and a few times more for steps that end late.
	if rounds := site.observed.Load() / machines; rounds > machines/3 {
		t.Errorf("every machine was asked %d times", rounds)
	}
}

// oneByOne are machines that accept their configurations one after the other, each once the step before is recorded.
type oneByOne struct {
	*workers

	turns chan struct{}
}

type patient struct {
	worker

	turns chan struct{}
}

func (o oneByOne) Machine(m cluster.Machine) lifecycle.Machine {
	return patient{worker{of: o.workers, want: m}, o.turns}
}

func (p patient) ApplyConfig(context.Context, []byte, step.Access, string) error {
	<-p.turns
	p.register()

	return nil
}

// A step that ends on one machine does not outdate the others: they are asked at the interval, regardless of how many
// steps end.
func TestRunner_asksAgainWhereAStepEnded(t *testing.T) {
	t.Parallel()

	const machines = 60

	site := oneByOne{&workers{}, make(chan struct{}, machines)}
	site.turns <- struct{}{}

	want, configs := many(machines)
	runner := &lifecycle.Runner{Fleet: site, Kubernetes: site, Configs: configs, Policy: cluster.DefaultPolicy(),
		Interval: 2 * time.Second, Events: func(e lifecycle.Event) {
			if e.State == lifecycle.StepFinished {
				site.turns <- struct{}{}
			}
		}}

	result, err := runner.Converge(bounded(t), want)
	if err != nil || len(result.Done) != machines {
		t.Fatalf("%d steps were done: %v", len(result.Done), err)
	}

	if rounds := site.observed.Load() / machines; rounds > machines/6 {
		t.Errorf("every machine was asked %d times", rounds)
	}
}

// counted has a machine that accepts its configuration after a number of requests to Kubernetes.
type counted struct {
	*workers

	rounds *atomic.Int64
	enough chan struct{}
}

const manyRounds = 30

func (c counted) Machine(m cluster.Machine) lifecycle.Machine {
	return patient{worker{of: c.workers, want: m}, c.enough}
}

func (c counted) Observe(ctx context.Context) kubestate.State {
	if c.rounds.Add(1) == manyRounds {
		close(c.enough)
	}

	return c.workers.Observe(ctx)
}

// Working workers are polled rarely while the run waits for another one, and once more at its end.
func TestRunner_asksWorkersAtRestRarely(t *testing.T) {
	t.Parallel()

	const machines = 20

	site := counted{&workers{}, &atomic.Int64{}, make(chan struct{})}
	want, configs := many(machines)

	for _, m := range want.Machines[1:] {
		site.nodes = append(site.nodes, kubestate.Node{Name: m.Name, Ready: true})
	}

	runner := &lifecycle.Runner{Fleet: site, Kubernetes: site, Configs: configs, Policy: cluster.DefaultPolicy(),
		Interval: 50 * time.Millisecond}

	result, err := runner.Converge(bounded(t), want)
	if err != nil || len(result.Done) != 1 {
		t.Fatalf("%d steps were done: %v", len(result.Done), err)
	}

	if asked := site.observed.Load() / machines; asked < 2 || asked > manyRounds/2 {
		t.Errorf("every machine was asked %d times in %d rounds", asked, site.rounds.Load())
	}
}

// unresponsive are machines that do not answer once the run has begun.
type unresponsive struct {
	*workers

	begun  chan struct{}
	silent func(machine string) bool
}

type silentWorker struct {
	worker

	of unresponsive
}

func (m unresponsive) Machine(w cluster.Machine) lifecycle.Machine {
	if m.silent(w.Name) {
		return silentWorker{worker{of: m.workers, want: w}, m}
	}

	return worker{of: m.workers, want: w}
}

func (s silentWorker) Observe(ctx context.Context) step.MachineState {
	select {
	case <-s.of.begun:
		<-ctx.Done()
	default:
	}

	return step.MachineState{Access: step.Unreachable, Cause: "no answer"}
}

// Many unreachable machines do not keep a run from asking those that answer.
func TestRunner_silentMachinesDelayNoOther(t *testing.T) {
	t.Parallel()

	const silent = 60

	site := unresponsive{&workers{}, make(chan struct{}), func(machine string) bool { return machine != "w-00" }}
	site.all.Add(1)

	want, configs := many(1 + silent)
	for i := range want.Machines {
		want.Machines[i].InService = site.silent(want.Machines[i].Name) // a create would wait for them
	}

	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()

	var asked int64

	runner := &lifecycle.Runner{Fleet: site, Kubernetes: site, Configs: configs, Policy: cluster.DefaultPolicy(),
		Interval: 10 * time.Millisecond, Events: func(e lifecycle.Event) {
			switch {
			case e.State == lifecycle.StepFinished:
				asked = site.observed.Load()
				close(site.begun)
			case asked > 0 && site.observed.Load() > asked+3:
				cancel() // it was asked repeatedly
			}
		}}

	if _, err := runner.Converge(ctx, want); !errors.Is(err, context.Canceled) {
		t.Fatalf("the machine that answers was asked %d times after its step: %v", site.observed.Load()-asked, err)
	}
}
