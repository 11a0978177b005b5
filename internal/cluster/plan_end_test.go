package cluster_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// A plan knows the steps of a removal from a cluster that lives on.
func TestForecastRemoval_fromALivingCluster(t *testing.T) {
	t.Parallel()

	running := step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true, NodeName: "cp-3"}
	plane := cluster.Spec{Bootstrapped: true, NodesBecomeReady: true, Removed: []cluster.Machine{
		cluster.MachineAt("cp-3", step.ControlPlane, "10.0.0.3"),
	}}
	plane.Joins = true

	var got []string

	steps, last := cluster.ForecastRemoval(plane, map[string]step.MachineState{"cp-3": running},
		cluster.DefaultPolicy())
	if !last.Done() {
		t.Errorf("after all steps there still is:\n%s", render(last))
	}

	for _, step := range steps {
		got = append(got, step.String())
	}

	want := []string{
		"remove control plane cp-3 from etcd (drains it, waits for volumes)",
		"reset control plane cp-3 (wipes its state, reboots to maintenance mode)",
		"delete node cp-3 from Kubernetes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A control plane is never reset before it left an etcd with other members, or while the members are unknown.
func TestPlanRemoval_neverTakesAVote(t *testing.T) {
	t.Parallel()

	var resets int

	for seed := range uint64(randomClusters) {
		random := rand.New(rand.NewPCG(seed, 7))
		all := randomSpec(random)
		have := randomSnapshot(random, all)
		have.Kubernetes.Owners = map[string]string{} // the run observed that no other resource owns them

		for i := range have.Etcd.Members {
			have.Etcd.Members[i].ID = have.Etcd.Members[i].Name
		}

		planes := slices.DeleteFunc(slices.Clone(all.Machines),
			func(m cluster.Machine) bool { return m.Role != step.ControlPlane })
		if len(planes) == 0 {
			continue
		}

		want := cluster.Spec{Resource: cluster.Resource{Joins: true, Protected: random.IntN(2) == 0}, Bootstrapped: true,
			Removed: planes[:1], OtherControlPlanes: planes[1:]}

		// A silent cluster is given up if it is not protected.
		givenUp := !want.Protected && !have.Kubernetes.Reachable && !have.Etcd.Known && random.IntN(2) == 0
		if givenUp {
			have.Kubernetes.Since = have.Time.Add(-time.Hour)
		}

		for _, op := range cluster.PlanRemoval(want, have, cluster.DefaultPolicy()).Steps {
			if _, reset := op.(step.Reset); !reset {
				continue
			}

			resets++

			_, isMember := have.MemberOf(planes[0])
			others := slices.ContainsFunc(planes[1:], func(m cluster.Machine) bool {
				s := have.Machines[m.Name]

				return s.Access == step.Member && s.EtcdService.ProvesData()
			})

			if isMember && len(have.Etcd.Members) > 1 {
				t.Fatalf("seed %d: %s is reset, and etcd lists it beside others", seed, op.On())
			}

			if isMember && want.Protected {
				t.Fatalf("seed %d: %s is reset, a member that is protected", seed, op.On())
			}

			if !have.Etcd.Known && others && !givenUp {
				t.Fatalf("seed %d: %s is reset while the members are unknown and others hold data", seed, op.On())
			}
		}
	}

	if resets < randomClusters/100 {
		t.Errorf("only %d resets in %d clusters prove little", resets, randomClusters)
	}
}

// Steps that must not reach all machines of a cluster at once are distinguished from the others.
func TestOneByOne_riskySteps(t *testing.T) {
	t.Parallel()

	for _, op := range []step.Step{
		step.ApplyConfig{Machine: "cp-1", Role: step.ControlPlane, Access: step.Member},
		step.WriteMeta{Machine: "w-1", Keys: "0x0a, 0x0c"},
	} {
		if !op.OneByOne() {
			t.Errorf("%q may reach all machines at once", op)
		}
	}

	for _, op := range []step.Step{
		step.ApplyConfig{Machine: "cp-1", Role: step.ControlPlane, Access: step.Maintenance},
		step.ApplyConfig{Machine: "w-1", Role: step.Worker, Access: step.Member},
		step.WriteMeta{Machine: "w-1", Keys: "0x0c"}, step.Bootstrap{Machine: "cp-1"},
	} {
		if op.OneByOne() {
			t.Errorf("%q waits for others", op)
		}
	}
}

func TestEnds_onlyWhenNoOtherHasTheData(t *testing.T) {
	t.Parallel()

	const (
		data    = "cp-3 member stage=running etcd=Running\n"
		noData  = "cp-3 maintenance\n"
		wiped   = "cp-1 maintenance\n"
		silent  = "cp-1 unreachable\n"
		for10s  = "kubernetes-down 10s\n"
		for1h   = "kubernetes-down 1h\n"
		plane   = "removed cp-3 controlplane 10.0.0.3\n"
		worker  = "removed w-1 worker 10.0.0.11\n"
		beside  = "beside cp-1 10.0.0.1\n"
		alone   = ""
		guarded = "protected\n"
	)

	for name, test := range map[string]struct {
		spec, snapshot string
		ends           bool
	}{
		"the only member goes":                    {plane, "nodes cp-3\netcd cp-3\n" + data, true},
		"another member stays":                    {plane + beside, "nodes cp-3\netcd cp-1 cp-3\n" + data, false},
		"Kubernetes answers, etcd is unknown":     {plane + beside, "nodes cp-3\n" + data + wiped, false},
		"the others were wiped":                   {plane + beside, for10s + data + wiped, true},
		"another may come back":                   {plane + beside, for10s + data + silent, false},
		"no others, and silent for a moment":      {plane + alone, for10s + data, false},
		"no others, and silent for long":          {guarded + plane + alone, for1h + data, true},
		"no others, and it has no data":           {guarded + plane + alone, for10s + noData, true},
		"another is silent for long, unprotected": {plane + beside, for1h + data + silent, true},
		"another is silent for long, protected":   {guarded + plane + beside, for1h + data + silent, false},
		"no data, and another is silent for long": {guarded + plane + beside, for1h + noData + silent, true},
		"no data, and another is silent":          {guarded + plane + beside, for10s + noData + silent, false},
		"a worker, and all is silent for long":    {guarded + worker + beside, for1h + silent, true},
		"a worker, and all is silent":             {guarded + worker + beside, for10s + silent, false},
	} {
		want, have := observed(t, test.spec, test.snapshot)
		if want.OtherControlPlanes == nil {
			want.OtherControlPlanes = []cluster.Machine{} // known to be none
		}

		if got := cluster.Ends(want, have, cluster.DefaultPolicy()); got != test.ends {
			t.Errorf("%s: %t, want %t", name, got, test.ends)
		}
	}
}
