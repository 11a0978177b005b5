package cluster_test

import (
	"fmt"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// fleet is a cluster of this many machines, all of which need an upgrade.
func fleet(size int, budget cluster.Budget) (cluster.Spec, map[string]step.MachineState) {
	want := cluster.Spec{Name: "prod", NodesBecomeReady: true, Bootstrapped: true,
		Pools: map[string]cluster.Budget{"": budget}}
	recorded := map[string]step.MachineState{}

	for i := range size {
		m := cluster.Machine{
			Name: fmt.Sprintf("w-%03d", i), Role: step.Worker,
			Wanted:       cluster.Wanted{Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250)},
			Configured:   cluster.Configured{ConfigDigest: newDigest},
			Installation: cluster.Installation{TalosVersion: "v1.13.0"},
		}

		if i < 3 {
			m.Name, m.Role = fmt.Sprintf("cp-%d", i), step.ControlPlane
		}

		want.Machines = append(want.Machines, m)
		recorded[m.Name] = step.MachineState{
			Access: step.Member, Stage: step.StageRunning, Ready: true, ConfigDigest: newDigest, TalosVersion: "v1.12.3",
			NodeName: m.Name,
		}
	}

	return want, recorded
}

var budgets = map[string]cluster.Budget{"one": {Count: 1}, "fifth": {Percent: 20}}

func BenchmarkPlan(b *testing.B) {
	for name, budget := range budgets {
		want, recorded := fleet(500, budget)
		have := cluster.Assume(want, recorded)

		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cluster.Plan(want, have, cluster.DefaultPolicy())
			}
		})
	}
}

func BenchmarkForecast(b *testing.B) {
	for name, budget := range budgets {
		want, recorded := fleet(500, budget)

		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if steps, _ := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy()); len(steps) != 1000 {
					b.Fatalf("%d steps, want an upgrade and an uncordon of 500 machines", len(steps))
				}
			}
		})
	}
}

// BenchmarkForecastKubernetes is an upgrade over two minor versions, with the bootstrap manifests at the end.
func BenchmarkForecastKubernetes(b *testing.B) {
	for name, budget := range budgets {
		want, recorded := fleet(500, budget)
		want.Kubernetes = cluster.KubernetesSpec{Version: "v1.36.3", Via: []string{"v1.35.4"}}

		for i, m := range want.Machines {
			s := recorded[m.Name]
			s.TalosVersion, s.Images = m.TalosVersion, imagesOf(m.Role, "v1.34.2")
			want.Machines[i].Images, recorded[m.Name] = imagesOf(m.Role, "v1.36.3"), s
		}

		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				steps, _ := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy())
				if want := 2*(500+500+3*4) + 1; len(steps) != want {
					b.Fatalf("%d steps, want %d", len(steps), want)
				}
			}
		})
	}
}

// BenchmarkPreflight is the last check before one of fifty cordoned workers goes out of service.
func BenchmarkPreflight(b *testing.B) {
	want, recorded := fleet(500, cluster.Budget{Percent: 20})
	model := cluster.Assume(want, recorded)
	have := cluster.Snapshot{Machines: model.Machines, Etcd: model.Etcd, Kubernetes: model.Kubernetes}

	for i := range have.Kubernetes.Nodes[450:] {
		have.Kubernetes.Nodes[450+i].Cordoned, have.Kubernetes.Nodes[450+i].Unschedulable = true, true
	}

	step := step.Upgrade{Machine: "w-480"}

	for b.Loop() {
		if reason := cluster.Preflight(want, have, cluster.DefaultPolicy(), step); reason != "" {
			b.Fatal(reason)
		}
	}
}
