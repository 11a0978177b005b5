package lifecycle_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// workers are machines that all take their configuration at the same moment.
type workers struct {
	lifecycle.Kubernetes

	all      sync.WaitGroup
	observed atomic.Int64
	mu       sync.Mutex
	nodes    []cluster.Node
}

type worker struct {
	lifecycle.Machine

	of   *workers
	want cluster.Machine
}

func (w *workers) Machine(m cluster.Machine) lifecycle.Machine { return worker{of: w, want: m} }

func (w *workers) Observe(context.Context) cluster.KubernetesState {
	w.mu.Lock()
	defer w.mu.Unlock()

	return cluster.KubernetesState{Reachable: true, Nodes: w.nodes}
}

func (m worker) Observe(context.Context) cluster.MachineState {
	m.of.observed.Add(1)
	m.of.mu.Lock()
	defer m.of.mu.Unlock()

	for _, n := range m.of.nodes {
		if n.Name == m.want.Name {
			return cluster.MachineState{
				Access: cluster.Member, Stage: cluster.StageRunning, Ready: true, Role: cluster.Worker, NodeName: n.Name,
				ConfigDigest: m.want.ConfigDigest,
			}
		}
	}

	return cluster.MachineState{Access: cluster.Maintenance, Stage: cluster.StageMaintenance}
}

func (m worker) ApplyConfig(context.Context, []byte, cluster.Access, string) error {
	m.of.all.Done()
	m.of.all.Wait()

	m.of.mu.Lock()
	defer m.of.mu.Unlock()

	m.of.nodes = append(m.of.nodes, cluster.Node{Name: m.want.Name, Ready: true})

	return nil
}

// Steps that end together are noted together: the machines are not all asked again after each of them.
func TestRunner_observesOnceForStepsThatEndTogether(t *testing.T) {
	t.Parallel()

	const machines = 30

	site := &workers{}
	site.all.Add(machines)

	want := cluster.Spec{Name: "prod", NodesBecomeReady: true, Bootstrapped: true}
	configs := map[string][]byte{}

	for i := range machines {
		m := cluster.Machine{Name: fmt.Sprintf("w-%02d", i), Role: cluster.Worker, Address: fmt.Sprintf("10.0.0.%d", i),
			ConfigDigest: "new"}
		want.Machines, configs[m.Name] = append(want.Machines, m), []byte("config")
	}

	runner := &lifecycle.Runner{Fleet: site, Kubernetes: site, Configs: configs, Policy: cluster.DefaultPolicy(),
		Interval: time.Second}

	result, err := runner.Converge(bounded(t), want)
	if err != nil || len(result.Done) != machines {
		t.Fatalf("%d steps were done: %v", len(result.Done), err)
	}

	// Once before, once after, and a few times more where some end late.
	if rounds := site.observed.Load() / machines; rounds > machines/3 {
		t.Errorf("every machine was asked %d times", rounds)
	}
}
