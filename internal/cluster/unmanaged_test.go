package cluster_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

func nodeNames(nodes []kubestate.Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}

	return names
}

func TestUnmanaged_isWhatNoResourceHas(t *testing.T) {
	t.Parallel()

	node := func(name, address string) kubestate.Node {
		return kubestate.Node{Name: name, Addresses: []string{address}}
	}
	want := cluster.Spec{
		Machines: []cluster.Machine{
			cluster.MachineAt("cp-1", step.ControlPlane, "10.0.0.1"),
			{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"}, Remembered: cluster.Remembered{NodeName: "silent"}},
			cluster.MachineAt("w-2", step.Worker, "10.0.0.12"),
			cluster.MachineAt("joins", step.Worker, "10.0.0.13"),
		},
		Removed:            []cluster.Machine{{Name: "old", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.14"}, Remembered: cluster.Remembered{NodeName: "leaves"}}},
		OtherControlPlanes: []cluster.Machine{cluster.MachineAt("10.0.0.2", step.ControlPlane, "10.0.0.2")},
	}
	have := cluster.Snapshot{
		Machines: map[string]step.MachineState{"cp-1": {Access: step.Member, NodeName: "cp-1"},
			"w-2": {Access: step.Member, NodeName: "other-name"}},
		Kubernetes: kubestate.State{Reachable: true, Nodes: []kubestate.Node{
			node("cp-1", "10.0.0.1"), node("silent", "10.9.9.9"), node("other-name", "10.0.0.12"), node("leaves", "10.9.9.8"),
			node("listed", "10.0.0.2"), node("theirs", "10.0.0.21"), node("renamed", "10.0.0.22"), node("auto", "10.0.0.30"),
			node("cp-auto", "10.0.0.31"), node("forged", "10.0.0.32"),
		}, Owners: map[string]string{"theirs": "another", "renamed": "mine", "cp-1": "mine"},
			Unproven: map[string]string{"forged": "mine"}},
	}

	if diff := cmp.Diff([]string{"auto", "cp-auto", "forged"}, nodeNames(cluster.Unmanaged(want, have))); diff != "" {
		t.Error(diff)
	}

	have.Kubernetes.Nodes = have.Kubernetes.Nodes[:1]
	if got := cluster.Unmanaged(want, have); got == nil || len(got) > 0 {
		t.Errorf("none of them are %#v", got)
	}

	have.Kubernetes.Reachable = false
	if got := cluster.Unmanaged(want, have); got != nil {
		t.Errorf("an API that does not answer says %v", got)
	}
}

// A plan knows them from state: the pods of the only control plane can move to them, so it is drained, as in the run.
func TestForecast_knowsUnmanagedNodes(t *testing.T) {
	t.Parallel()

	want := cluster.Spec{Bootstrapped: true, NodesBecomeReady: true,
		Machines: []cluster.Machine{{Name: "cp-1", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1"},
			Installation: cluster.Installation{TalosVersion: "v1.13.1"},
			Configured:   cluster.Configured{ConfigDigest: "d"}}},
		Unmanaged: []kubestate.Node{{Name: "auto", Addresses: []string{"10.0.0.30"}, Ready: true}}}
	recorded := map[string]step.MachineState{"cp-1": {Access: step.Member, Role: step.ControlPlane,
		NodeName: "cp-1", Stage: step.StageRunning, Ready: true, TalosVersion: "v1.13.0", ConfigDigest: "d"}}

	drained := func() bool {
		steps, last := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy())
		i := slices.IndexFunc(steps, func(s step.Step) bool { _, is := s.(step.Upgrade); return is })

		if i < 0 || !last.Done() {
			t.Fatalf("steps %v, and then %+v", steps, last)
		}

		return steps[i].(step.Upgrade).Drain
	}

	if !drained() {
		t.Error("the control plane is not drained, although there is another node")
	}

	if want.Unmanaged = nil; drained() {
		t.Error("the only node of a cluster is drained")
	}
}
