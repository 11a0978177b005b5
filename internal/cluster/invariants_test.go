package cluster_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

const randomClusters = 10_000

// TestPlan_keepsInvariantsOnRandomClusters checks the invariants on clusters of 1 to 50 machines in any mix of
// states.
func TestPlan_keepsInvariantsOnRandomClusters(t *testing.T) {
	upgraded := 0

	for seed := range uint64(randomClusters) {
		random := rand.New(rand.NewPCG(seed, 1))
		want := randomSpec(random)
		have := randomSnapshot(random, want)
		policy := cluster.DefaultPolicy()

		if random.IntN(2) == 0 {
			randomKubernetesState(random, &want, &have)
		}

		decision := cluster.Plan(want, have, policy)
		upgraded += countUpgrades(decision)

		for _, broken := range slices.Concat(
			generalInvariants(decision), configInvariants(want, have, decision), bootstrapInvariants(want, have, decision),
			metaInvariants(want, have, decision),
			kubernetesInvariants(want, have, decision), teardownInvariants(want, have, cluster.PlanTeardown(want, have, policy)),
		) {
			t.Errorf("seed %d: %s\n%+v\n%s", seed, broken, have, render(decision))
		}

		shuffled := want
		shuffled.Machines = slices.Clone(want.Machines)
		random.Shuffle(len(shuffled.Machines), func(i, j int) {
			shuffled.Machines[i], shuffled.Machines[j] = shuffled.Machines[j], shuffled.Machines[i]
		})

		if diff := cmp.Diff(render(decision), render(cluster.Plan(shuffled, have, policy))); diff != "" {
			t.Errorf("seed %d: the order in which machines are written changes the decision:\n%s", seed, diff)
		}

		if t.Failed() {
			return
		}
	}

	if upgraded < randomClusters/50 {
		t.Errorf("only %d components were upgraded", upgraded)
	}
}

func countUpgrades(d cluster.Decision) int {
	return len(slices.DeleteFunc(slices.Clone(d.Steps),
		func(s step.Step) bool { _, ok := s.(step.UpgradeComponent); return !ok }))
}

func generalInvariants(d cluster.Decision) []string {
	var broken []string

	if len(d.Refusals) > 0 && len(d.Steps) > 0 {
		broken = append(broken, "steps in spite of a refusal")
	}

	seen := map[string]bool{}
	for _, s := range d.Steps {
		if seen[s.On()] {
			broken = append(broken, "two steps at once on "+s.On())
		}

		seen[s.On()] = true
	}

	return broken
}

// configInvariants: at most one control plane of a working cluster gets another configuration at a time.
func configInvariants(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) []string {
	if !want.Bootstrapped && len(have.Etcd.Members) == 0 {
		return nil
	}

	var changed []string

	for _, s := range d.Steps {
		if apply, ok := s.(step.ApplyConfig); ok && apply.Role == step.ControlPlane && apply.Access == step.Member {
			changed = append(changed, apply.Machine)
		}
	}

	if len(changed) > 1 {
		return []string{fmt.Sprintf("configuration of %v is changed at once", changed)}
	}

	return nil
}

// bootstrapInvariants is invariant 1: a bootstrap requires that every control plane provably has no etcd data.
func bootstrapInvariants(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) []string {
	bootstraps := slices.DeleteFunc(slices.Clone(d.Steps), func(s step.Step) bool { return !step.BeginsEtcd(s) })
	if len(bootstraps) == 0 {
		return nil
	}

	var broken []string
	if len(bootstraps) > 1 {
		broken = append(broken, "two bootstraps")
	}

	if len(have.Etcd.Members) > 0 || want.Bootstrapped && want.RestoreFrom == "" {
		broken = append(broken, "bootstrap of a cluster that has an etcd")
	}

	if _, restore := bootstraps[0].(step.Restore); restore != (want.RestoreFrom != "") {
		broken = append(broken, "etcd begins otherwise than it was asked for")
	}

	for _, m := range want.Machines {
		s := have.Machines[m.Name]
		member := s.Access == step.Member
		proven := s.Access == step.Maintenance || member && s.EtcdService.WithoutData() || s.Fresh &&
			!(member && s.EtcdService.ProvesData())

		if m.Role == step.ControlPlane && s.BootstrapSent && (bootstraps[0].On() != m.Name || s.Busy != "") {
			broken = append(broken, "bootstrap although "+m.Name+" was asked before")
		}

		if m.Role == step.ControlPlane && !s.BootstrapSent && (!proven || member && s.BootstrapRequested) {
			broken = append(broken, "bootstrap while "+m.Name+" may hold etcd data")
		}

		if m.Role == step.Worker && bootstraps[0].On() == m.Name {
			broken = append(broken, "bootstrap on a worker")
		}
	}

	return broken
}

// metaInvariants: META is written only on members where something is missing, and the network of one machine at a
// time, while every other machine answers.
func metaInvariants(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) []string {
	var (
		broken  []string
		changed string
	)

	for _, s := range d.Steps {
		write, ok := s.(step.WriteMeta)
		if !ok {
			continue
		}

		m := want.Machines[slices.IndexFunc(want.Machines, func(m cluster.Machine) bool { return m.Name == write.Machine })]
		state := have.Machines[m.Name]

		if state.Access != step.Member || state.Busy != "" || maps.Equal(m.Meta, state.Meta) {
			broken = append(broken, fmt.Sprintf("%q on a machine that does not ask for it", write))
		}

		if network, wanted := m.Meta[metakey.Network]; !wanted || network == state.Meta[metakey.Network] {
			continue
		}

		if changed != "" {
			broken = append(broken, "two networks at once: "+changed+" and "+m.Name)
		}

		changed = m.Name
	}

	for _, m := range want.Machines {
		s := have.Machines[m.Name]
		if changed != "" && m.Name != changed &&
			(s.Access != step.Member && s.Access != step.Maintenance || s.Busy != "") {
			broken = append(broken, "the network of "+changed+" changes while "+m.Name+" is away")
		}
	}

	return broken
}

// teardownInvariants: only members are reset, and the last control plane only after all other machines are in
// maintenance mode or given up.
func teardownInvariants(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) []string {
	var broken []string

	for _, s := range d.Steps {
		reset, ok := s.(step.Reset)
		if !ok {
			continue
		}

		if i := slices.IndexFunc(want.Machines,
			func(m cluster.Machine) bool { return m.Name == reset.Machine }); cluster.TeardownLeft(want.Machines[i], have,
			cluster.DefaultPolicy()) != "" {
			broken = append(broken, "reset of "+reset.Machine+", which is not the machine meant")
		}

		if have.Machines[reset.Machine].Access != step.Member {
			broken = append(broken, "reset of "+reset.Machine+", which is no member")
		}

		for _, m := range want.Machines {
			left := have.Machines[m.Name].Access == step.Maintenance ||
				cluster.TeardownLeft(m, have, cluster.DefaultPolicy()) != ""
			if m.Name != reset.Machine && !left &&
				(reset.Last || reset.Role == step.ControlPlane && m.Role == step.Worker) {
				broken = append(broken, fmt.Sprintf("%q before %s was done", reset, m.Name))
			}
		}
	}

	return broken
}

func randomSpec(random *rand.Rand) cluster.Spec {
	want := cluster.Spec{Name: "prod", NodesBecomeReady: random.IntN(4) > 0}
	controlPlanes := random.IntN(6)
	workers := random.IntN(51 - controlPlanes)

	if controlPlanes+workers == 0 {
		controlPlanes = 1
	}

	for i := range controlPlanes + workers {
		role, name := step.ControlPlane, fmt.Sprintf("cp-%d", i)
		if i >= controlPlanes {
			role, name = step.Worker, fmt.Sprintf("w-%d", i)
		}

		m := cluster.Machine{Name: name, Role: role, Wanted: cluster.Wanted{Address: fmt.Sprintf("10.0.0.%d", i+1)},
			Configured:   cluster.Configured{ConfigDigest: "new"},
			Installation: cluster.Installation{TalosVersion: "v1.13.0"}}

		switch random.IntN(6) {
		case 0:
			m.Meta = map[uint8]string{0x0c: "new"}
		case 1:
			m.Meta = map[uint8]string{0x0a: "new", 0x0c: "new"}
		}

		want.Machines = append(want.Machines, m)
	}

	want.Bootstrapped = random.IntN(3) == 0

	if random.IntN(4) == 0 {
		want.RestoreFrom = "key"
	}

	return want
}

func randomSnapshot(random *rand.Rand, want cluster.Spec) cluster.Snapshot {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	have := cluster.Snapshot{Time: now, Machines: map[string]step.MachineState{}}
	have.Kubernetes.Reachable = random.IntN(2) == 0
	have.Etcd.Known = random.IntN(3) == 0
	quiet := random.IntN(2) == 0 // half of the clusters have few faults, otherwise bootstraps would be rare

	for _, m := range want.Machines {
		s := randomState(random, now, m)
		if quiet {
			s = step.MachineState{Access: step.Member, Stage: step.StageBooting, EtcdService: step.ServicePreparing,
				ConfigDigest: "new", Run: step.Run{Since: now}}
			if random.IntN(6) == 0 {
				s = step.MachineState{Access: step.Unreachable,
					Run: step.Run{Fresh: random.IntN(2) == 0, Since: now.Add(-time.Hour)}}
			}
		}

		have.Machines[m.Name] = s

		if have.Etcd.Known && m.Role == step.ControlPlane && random.IntN(2) == 0 {
			have.Etcd.Members = append(have.Etcd.Members,
				etcdstate.Member{Name: m.Name, PeerURLs: []string{"https://" + m.Address + ":2380"}})
		}
	}

	// A run asks at most one machine.
	if first := want.Machines[0]; first.Role == step.ControlPlane && random.IntN(5) == 0 {
		s := have.Machines[first.Name]
		s.BootstrapSent, s.Fresh = true, false
		have.Machines[first.Name] = s
	}

	return have
}

func randomState(random *rand.Rand, now time.Time, m cluster.Machine) step.MachineState {
	pick := func(options ...string) string { return options[random.IntN(len(options))] }
	s := step.MachineState{
		Access: step.Access(pick("", "unreachable", "maintenance", "maintenance", "member", "member", "member",
			"member", "member")),
		Stage:        step.Stage(pick("booting", "running", "installing", "rebooting")),
		EtcdService:  step.ServiceState(pick("", "Preparing", "Preparing", "Running", "Finished", "Failed")),
		ConfigDigest: pick("", "old", "new"),
		Run:          step.Run{Fresh: random.IntN(2) == 0, Resetting: random.IntN(5) == 0},

		BootstrapRequested: random.IntN(8) == 0, Ready: random.IntN(2) == 0,
	}
	s.Since = now.Add(-time.Duration(random.IntN(30)) * time.Minute)

	if len(m.Meta) > 0 && random.IntN(2) == 0 {
		s.Meta = map[uint8]string{0x0a: pick("old", "new"), 0x0c: pick("old", "new")}
	}

	if random.IntN(10) == 0 {
		s.Busy = "in progress"
	}

	if random.IntN(10) == 0 {
		s.RestoredAt = now
	}

	if random.IntN(100) == 0 {
		s.Access = step.Foreign
	}

	if random.IntN(3) == 0 {
		s.UUID = m.Name
	}

	return s
}
