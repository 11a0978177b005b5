package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// TestPlan_keepsInvariantsOnRandomPods checks the invariants on clusters of pods in any mix of states, including
// impossible ones.
func TestPlan_keepsInvariantsOnRandomPods(t *testing.T) {
	counted := map[string]int{}

	for seed := range uint64(randomClusters) {
		random := rand.New(rand.NewPCG(seed, 4))
		want := randomSpec(random)
		want.Machines = want.Machines[:min(len(want.Machines), 12)]
		have := randomSnapshot(random, want)
		randomPodStates(random, &want, &have)

		policy := cluster.DefaultPolicy()
		decision := cluster.Plan(want, have, policy)
		teardown := cluster.PlanTeardown(want, have, policy)

		for _, step := range slices.Concat(decision.Steps, teardown.Steps) {
			counted[fmt.Sprintf("%T", step)]++
		}

		for _, broken := range slices.Concat(
			generalInvariants(decision), configInvariants(want, have, decision), bootstrapInvariants(want, have, decision),
			podInvariants(want, have, decision), podTeardownInvariants(want, have, teardown),
		) {
			t.Errorf("seed %d: %s\n%+v\n%s\n%s", seed, broken, have, render(decision), render(teardown))
		}

		if t.Failed() {
			return
		}
	}

	for _, step := range []step.Step{step.Upgrade{}, step.ReplaceVolumes{}, step.Reset{},
		step.ApplyConfig{}, step.Bootstrap{}} {
		if name := fmt.Sprintf("%T", step); counted[name] < randomClusters/100 {
			t.Errorf("only %d of %s", counted[name], name)
		}
	}
}

// randomPodStates makes the machines pods with pod states.
func randomPodStates(random *rand.Rand, want *cluster.Spec, have *cluster.Snapshot) {
	some := func(n int) bool { return random.IntN(n) == 0 }

	for i := range want.Machines {
		m := &want.Machines[i]
		m.Container, m.NodeName, m.Meta = true, m.Name, nil

		if some(3) {
			m.Replace = "image"
		}

		s := have.Machines[m.Name]
		s.UUID, s.Meta, s.Current = "", nil, some(4)

		switch {
		case some(10):
			s = step.MachineState{Access: step.Gone, Run: step.Run{Since: s.Since}}
		case some(8):
			s = step.MachineState{Access: step.Unreachable, Stopped: true, VolumesLost: some(2),
				Run: step.Run{Since: s.Since}}
		case s.Access == step.Member && some(2):
			s.TalosVersion = "v1.12.0"
		}

		if s.Access == step.Member {
			s.Addresses = []string{m.Address}
		}

		if s.Access == step.Member && some(5) {
			s.Addresses = []string{"10.9.9.9"}

			if some(3) { // and etcd knows it by a stable one
				s.Addresses = append(s.Addresses, m.Address)
			}
		}

		if have.Etcd.Known && some(2) {
			s.Stage, s.EtcdService, s.Ready = step.StageRunning, step.ServiceRunning, true
		}

		have.Machines[m.Name] = s
	}

	for i := range have.Etcd.Members {
		have.Etcd.Members[i].ID = "id-" + have.Etcd.Members[i].Name
	}

	have.Time = have.Time.Add(time.Minute)
}

// podInvariants: no step runs on a missing pod; only lost data is given up, on one machine at a time; and no control
// plane goes out of service while etcd has a wrong address for another one.
func podInvariants(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) []string {
	var (
		broken   []string
		replaced int
	)

	for _, op := range d.Steps {
		m, _ := want.Find(op.On())
		s := have.Machines[m.Name]

		if s.Access == step.Gone {
			broken = append(broken, fmt.Sprintf("%q, and there is no such machine", op))
		}

		switch op := op.(type) {
		case step.Bootstrap, step.Restore:
			broken = append(broken, missingPods(want, have, op)...)
		case step.ReplaceVolumes:
			if replaced++; !s.VolumesLost || s.Access != step.Unreachable || replaced > 1 {
				broken = append(broken, fmt.Sprintf("%q, of %d", op, replaced))
			}
		case step.Upgrade:
			if s.Access != step.Member &&
				(m.Replace == "" || s.Current || s.VolumesLost || s.Access == step.Unreachable && !s.Stopped) {
				broken = append(broken, fmt.Sprintf("%q of a machine that is %s", op, s.Access))
			}

			broken = append(broken, formerPeers(want, have, m, op)...)
		case step.ApplyConfig, step.LeaveEtcd:
			if op.Disrupts() {
				broken = append(broken, formerPeers(want, have, m, op)...)
			}
		}
	}

	return broken
}

func missingPods(want cluster.Spec, have cluster.Snapshot, op step.Step) []string {
	var broken []string

	for _, m := range want.Machines {
		if m.Role == step.ControlPlane && have.Machines[m.Name].Access == step.Gone {
			broken = append(broken, fmt.Sprintf("%q while %s does not exist", op, m.Name))
		}
	}

	return broken
}

// formerPeers names the other control planes with a wrong address in etcd. A machine that is down has nothing to
// lose.
func formerPeers(want cluster.Spec, have cluster.Snapshot, m cluster.Machine, op step.Step) []string {
	var broken []string

	if m.Role != step.ControlPlane || have.Machines[m.Name].EtcdDown() ||
		have.Machines[m.Name].Access != step.Member {
		return nil
	}

	for _, other := range want.Machines {
		s := have.Machines[other.Name]
		if _, member := have.MemberOf(other); member && other.Name != m.Name && s.Access == step.Member &&
			!slices.Contains(s.Addresses, other.Address) {
			broken = append(broken, fmt.Sprintf("%q while etcd looks for %s in a former pod", op, other.Name))
		}
	}

	return broken
}

// podTeardownInvariants: everything is deleted except what belongs to others, and the last control plane after all
// other machines.
func podTeardownInvariants(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) []string {
	var broken []string

	for _, op := range d.Steps {
		reset, ok := op.(step.Reset)
		if !ok {
			continue
		}

		if s := have.Machines[reset.Machine]; s.Access == step.Foreign || s.Access == step.Gone ||
			s.Access == step.Unobserved || reset.Graceful {
			broken = append(broken, fmt.Sprintf("%q, which is %s", reset, s.Access))
		}

		for _, m := range want.Machines {
			left := have.Machines[m.Name].Access == step.Gone || cluster.TeardownLeft(m, have, cluster.DefaultPolicy()) != ""
			if m.Name != reset.Machine && !left &&
				(reset.Last || reset.Role == step.ControlPlane && m.Role == step.Worker) {
				broken = append(broken, fmt.Sprintf("%q before %s was done", reset, m.Name))
			}
		}
	}

	return broken
}

// TestForecast_ofPods is what a plan shows, which knows only the configuration and the state.
func TestForecast_ofPods(t *testing.T) {
	machine := func(name string, role step.Role) cluster.Machine {
		return cluster.Machine{Name: name, Role: role, Wanted: cluster.Wanted{Address: name + ".x"},
			Remembered: cluster.Remembered{NodeName: name}, Configured: cluster.Configured{ConfigDigest: "new"},
			Installation: cluster.Installation{TalosVersion: "v1.13.0", Installer: "talos:v1.13.0"}, Container: true}
	}
	runs := step.MachineState{Access: step.Member, Stage: step.StageRunning, ConfigDigest: "new",
		TalosVersion: "v1.13.0"}

	want := cluster.Spec{Name: "dev", NodesBecomeReady: true, Bootstrapped: true}
	for _, name := range []string{"cp-0", "cp-1", "cp-2"} {
		want.Machines = append(want.Machines, machine(name, step.ControlPlane))
	}

	want.Machines[1].Replace = "memory 2Gi -> 4Gi"
	want.Machines = append(want.Machines, machine("worker-0", step.Worker))
	want.Removed = []cluster.Machine{machine("cp-3", step.ControlPlane)}
	want.Removed[0].MemberID = "m3"

	steps, last := cluster.Forecast(want,
		cluster.Assume(want, map[string]step.MachineState{"cp-0": runs, "cp-1": runs, "cp-2": runs, "cp-3": runs}),
		cluster.DefaultPolicy())

	got := texts(steps)
	forecast := texts([]step.Step{
		step.ApplyConfig{Machine: "worker-0", Role: step.Worker, Access: step.Maintenance, TalosVersion: "v1.13.0",
			Container: true},
		step.Upgrade{Machine: "cp-1", Container: true, Replace: "memory 2Gi -> 4Gi",
			Evacuation: step.Evacuation{Drain: true, Volumes: true}},
		step.Uncordon{Machine: "cp-1", Node: "cp-1"},
		step.LeaveEtcd{Machine: "cp-3", Evacuation: step.Evacuation{Drain: true, Volumes: true}},
		step.Reset{Machine: "cp-3", Role: step.ControlPlane, Container: true},
		step.DeleteNode{Machine: "cp-3", Node: "cp-3"},
	})

	if !slices.Equal(got, forecast) || !last.Done() {
		t.Errorf("forecast %q, want %q; left:\n%s", got, forecast, render(last))
	}
}
