package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// TestForecast_isWhatHappens compares the forecast of a change with the run, on healthy clusters of the model without
// failures. Upgrades, reboots and removals are the same in any interleaving.
func TestForecast_isWhatHappens(t *testing.T) {
	clusters := sample(1000)
	enough := clusters / 8

	compared := 0

	for seed := range uint64(clusters) {
		run := newTrial(seed)
		run.refuses = false // the plan would have been refused too
		run.unmanaged = nil // the actions of an autoscaler cannot be forecast
		// declared dead after a time, which a forecast does not have
		dead := func(m cluster.Machine) bool { return run.meant[m.Name].life == off }

		if !run.whole || slices.ContainsFunc(run.want.Removed, dead) || run.waitsForOthers() {
			continue
		}

		compared++

		run.replaces()

		for run.tickEtcd() { // requests from before finish within seconds
		}

		watch := newObserver(run.site, run.want)
		watch.observe() // members outside the spec are asked the second time

		steps, last := cluster.Forecast(run.planned(), watch.observe(), run.policy)
		forecast := texts(steps)

		if !last.Done() {
			t.Fatalf("seed %d: after everything that is forecast, there still is:\n%s\n%s", seed, render(last), run)
		}

		if end := run.run(); end != "done" {
			t.Fatalf("seed %d: ended %s\n%s", seed, end, run)
		}

		done := texts(slices.DeleteFunc(run.done, waitsOnly))
		if !slices.Equal(forecast, done) {
			t.Fatalf("seed %d: forecast\n%s\ndone\n%s\n%s", seed, strings.Join(forecast, "\n"), strings.Join(done, "\n"), run)
		}
	}

	if compared < enough {
		t.Errorf("%d of %d clusters were compared, want at least %d", compared, clusters, enough)
	}
}

// planned is the spec as a plan has it.
func (t *trial) planned() cluster.Spec {
	want := t.want
	want.Owner = ""

	return want
}

// waitsOnly is true for a step that waits for a component which already has its image: one that is not ready yet
// after a boot, while others are upgraded. Marks of nodes are not forecast
// either.
func waitsOnly(op step.Step) bool {
	switch op.(type) {
	case step.TakeOwnership, step.NoteStaged:
		return true
	}

	up, ok := op.(step.UpgradeComponent)

	return ok && !slices.ContainsFunc(up.Each(), func(part step.UpgradeComponent) bool { return part.From != part.Image })
}

// TestForecast_endsInReady runs every plan on the planner's own model from a recorded state, even in the middle of a
// boot. If no machine is silent or foreign, the steps lead to a finished cluster, and no machine goes through
// anything twice.
func TestForecast_endsInReady(t *testing.T) {
	for seed := range uint64(sample(2500)) {
		random := rand.New(rand.NewPCG(seed, 2))
		want := randomSpec(random)
		recorded := randomRecord(random, &want)
		hops := recordKubernetes(random, &want, recorded)

		counted := map[string]int{}

		steps, last := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy())
		if !last.Done() {
			t.Fatalf("seed %d: after all steps there still is:\n%s", seed, render(last))
		}

		for _, s := range steps {
			counted[fmt.Sprintf("%T on %s", s, s.On())]++
		}

		expected := expected(want, recorded)
		expectKubernetes(want, hops, expected)

		if diff := cmp.Diff(expected, counted); diff != "" {
			t.Fatalf("seed %d: steps differ (-want +got):\n%s", seed, diff)
		}
	}
}

// randomRecord is a recorded state in which some machines run an older Talos or another configuration, and some
// leave.
func randomRecord(random *rand.Rand, want *cluster.Spec) map[string]step.MachineState {
	recorded := map[string]step.MachineState{}
	old := []string{"v1.13.0", "v1.12.3", "v1.11.6", "v1.13.1"}[random.IntN(4)]
	controlPlanes := 0

	if want.Bootstrapped {
		want.RestoreFrom = "" // which is for control planes that lost everything
	}

	for i, m := range want.Machines {
		if m.Role == step.ControlPlane {
			controlPlanes++
		}

		want.Machines[i].Via = []cluster.Release{{Version: "v1.12.5"}}
		want.Machines[i].AllowDowngrade = true

		if want.Bootstrapped && (m.Role == step.ControlPlane || random.IntN(2) == 0) {
			s := step.MachineState{
				Access: step.Member, Stage: step.StageRunning, Ready: true,
				ConfigDigest: []string{"new", "old"}[random.IntN(2)],
				TalosVersion: []string{"v1.13.0", old}[random.IntN(2)],
			}
			if s.ConfigDigest == "old" && random.IntN(2) == 0 {
				s.RebootFor = []string{"machine.sysctls"}
			}

			if random.IntN(4) == 0 { // observed in the middle of a boot
				s.Stage, s.Ready = step.StageBooting, false
			}

			recorded[m.Name] = s
		}
	}

	for name, s := range recorded {
		if controlPlanes == 2 { // which cannot lose one
			s.TalosVersion, s.RebootFor = "v1.13.0", nil
			recorded[name] = s
		}
	}

	for i := range random.IntN(4) {
		role := []step.Role{step.ControlPlane, step.Worker}[random.IntN(2)]
		if !want.Bootstrapped || controlPlanes < 3 {
			break
		}

		m := cluster.MachineAt(fmt.Sprintf("old-%d", i), role, fmt.Sprintf("10.0.1.%d", i))
		want.Removed = append(want.Removed, m)
		recorded[m.Name] = step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true}
	}

	return recorded
}

// recordKubernetes records the Kubernetes of the machines. All run the same version, and new ones join with it where
// control planes of their spec show it. It returns the number of minor versions that each still needs.
func recordKubernetes(random *rand.Rand, want *cluster.Spec, recorded map[string]step.MachineState) map[string]int {
	hops := map[string]int{}
	path := []string{"v1.34.2", "v1.35.4", "v1.36.3"}

	if random.IntN(2) == 0 {
		return hops
	}

	at := random.IntN(len(path))
	want.Kubernetes = cluster.KubernetesSpec{Version: path[2], Via: path[1:2]}

	if want.Bootstrapped && random.IntN(2) == 0 {
		want.Kubernetes.Manifests = path[at]
	}

	for i, m := range want.Machines {
		want.Machines[i].Images = imagesOf(m.Role, path[2])

		s, known := recorded[m.Name]
		if known {
			s.Images = imagesOf(m.Role, path[at])
			recorded[m.Name] = s
		}

		if known || want.Bootstrapped && want.OwnsControlPlane() {
			hops[m.Name] = len(path) - 1 - at
		}
	}

	return hops
}

// expectKubernetes adds the steps of that many minor versions.
func expectKubernetes(want cluster.Spec, hops, steps map[string]int) {
	first := ""

	for _, m := range want.Machines {
		changes := 1
		if m.Role == step.ControlPlane {
			changes = 2 // the API server, and everything behind it

			if first == "" || m.Name < first {
				first = m.Name
			}
		}

		if n := hops[m.Name]; n > 0 {
			steps[fmt.Sprintf("%T on %s", step.PullImages{}, m.Name)] = n
			steps[fmt.Sprintf("%T on %s", step.UpgradeComponent{}, m.Name)] = n * changes
		}
	}

	// Where the manifests of the cluster are unknown, kube-proxy's image shows them.
	n := hops[first]
	if want.Kubernetes.Manifests == "" {
		n = min(n, 1)
	}

	if n > 0 {
		steps[fmt.Sprintf("%T on %s", step.SyncManifests{}, first)] = n
	}
}

// expected are the steps that the machines need.
func expected(want cluster.Spec, recorded map[string]step.MachineState) map[string]int {
	steps := map[string]int{}
	add := func(s step.Step, machine string, n int) {
		if n > 0 {
			steps[fmt.Sprintf("%T on %s", s, machine)] += n
		}
	}

	founds := want.OwnsControlPlane() && !want.Bootstrapped

	for _, m := range want.Machines {
		s, known := recorded[m.Name]
		hops := map[string]int{"v1.12.3": 1, "v1.11.6": 2, "v1.13.1": 1}[s.TalosVersion]
		add(step.Upgrade{}, m.Name, hops)

		if !known || s.ConfigDigest != "new" {
			add(step.ApplyConfig{}, m.Name, 1)
		}

		if len(s.RebootFor) > 0 {
			hops++
		}

		add(step.Uncordon{}, m.Name, hops)
		add(step.WriteMeta{}, m.Name, min(1, len(m.Meta)))

		if founds && want.RestoreFrom != "" {
			add(step.Restore{}, m.Name, 1)
		} else if founds {
			add(step.Bootstrap{}, m.Name, 1)
		}

		founds = false
	}

	for _, m := range want.Removed {
		if m.Role == step.ControlPlane {
			add(step.LeaveEtcd{}, m.Name, 1)
		}

		add(step.Reset{}, m.Name, 1)
		add(step.DeleteNode{}, m.Name, 1)
	}

	return steps
}

// texts are sorted steps. Whether a node is drained depends on how many are left.
func texts(steps []step.Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, fmt.Sprintf("%s: %s", s.On(),
			strings.NewReplacer("drain, wait for volumes, ", "",
				" (drains it, waits for volumes)", "", "drains it, waits for volumes, ", "").Replace(s.String())))
	}

	slices.Sort(out)

	return out
}

// TestForecast_ofARestore: recorded members and nodes of a lost etcd block nothing, and an interrupted run continues
// where it stopped.
func TestForecast_ofARestore(t *testing.T) {
	t.Parallel()

	want := cluster.Spec{
		Name: "prod", Bootstrapped: true, RestoreFrom: "key", NodesBecomeReady: true,
		Machines: []cluster.Machine{
			{Name: "cp-1", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1", UUID: "aaaa"},
				Installation: cluster.Installation{TalosVersion: "v1.13.0", InstallTarget: "/dev/sda"},
				Remembered:   cluster.Remembered{MemberID: "m-1", NodeName: "n-1"}},
			{Name: "cp-2", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.2", UUID: "bbbb"},
				Installation: cluster.Installation{TalosVersion: "v1.13.0", InstallTarget: "/dev/sda"},
				Remembered:   cluster.Remembered{MemberID: "m-2", NodeName: "n-2"}},
			{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"}, Installation: cluster.Installation{TalosVersion: "v1.13.0"}},
		},
	}

	lost := func(uuid string) step.MachineState {
		return step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance, UUID: uuid}
	}
	worker := step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true, NodeName: "n-11",
		TalosVersion: "v1.13.0"}
	waiting := step.MachineState{Access: step.Member, Stage: step.StageBooting, TalosVersion: "v1.13.0"}
	restored := step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true,
		TalosVersion: "v1.13.0", RestoredAt: time.Unix(1, 0)}

	installs := "apply configuration to %s: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane"
	first, second := fmt.Sprintf(installs, "cp-1"), fmt.Sprintf(installs, "cp-2")
	restore := "restore etcd on cp-1 from key"

	for name, test := range map[string]struct {
		recorded map[string]step.MachineState
		steps    []string
	}{
		"all are lost": {map[string]step.MachineState{"cp-1": lost("aaaa"), "cp-2": lost("bbbb"), "w-1": worker},
			[]string{first, second, restore}},
		"one is configured": {map[string]step.MachineState{"cp-1": lost("aaaa"), "cp-2": waiting, "w-1": worker},
			[]string{first, restore}},
		"all are configured": {map[string]step.MachineState{"cp-1": waiting, "cp-2": waiting, "w-1": worker},
			[]string{restore}},
		"one is restored": {map[string]step.MachineState{"cp-1": restored, "cp-2": waiting, "w-1": worker}, nil},
	} {
		steps, last := cluster.Forecast(want, cluster.Assume(want, test.recorded), cluster.DefaultPolicy())
		if !last.Done() {
			t.Errorf("%s: after all steps there still is:\n%s", name, render(last))
		}

		var lines []string
		for _, s := range steps {
			lines = append(lines, s.String())
		}

		slices.Sort(lines)
		slices.Sort(test.steps)

		if !slices.Equal(lines, test.steps) {
			t.Errorf("%s: the steps are %q, want %q", name, lines, test.steps)
		}
	}
}

// The next steps are the first ones of the forecast. The last round is complete.
func TestNext_beginsTheForecast(t *testing.T) {
	t.Parallel()

	want, recorded := fleet(6, cluster.Budget{Count: 1})
	have, policy := cluster.Assume(want, recorded), cluster.DefaultPolicy()
	all, _ := cluster.Forecast(want, have, policy)

	for _, most := range []int{1, 3, len(all), 100} {
		next := cluster.Next(want, have, policy, most,
			func(s cluster.Snapshot) cluster.Decision { return cluster.Plan(want, s, policy) })
		if len(next) < min(most, len(all)) || len(next) > len(all) || len(next) > most+len(want.Machines) {
			t.Fatalf("%d of %d steps are next, want %d", len(next), len(all), most)
		}

		for i, s := range next {
			if s.String() != all[i].String() {
				t.Errorf("step %d is %q instead of %q", i, s, all[i])
			}
		}
	}
}
