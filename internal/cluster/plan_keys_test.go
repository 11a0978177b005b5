package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// A control plane that is its own resource forecasts what it can do beside those of others, which the forecast
// assumes to have nodes.
func TestForecast_keysBesideControlPlanesOfOthers(t *testing.T) {
	old, used, dropped := keysOf("old+new"), keysOf("new+old"), keysOf("new")
	m := cluster.Machine{Name: "cp-2", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.2"}, Configured: cluster.Configured{ConfigDigest: "d", Keys: used}}
	want := cluster.Spec{
		Machines: []cluster.Machine{m}, Resource: cluster.Resource{Joins: true}, Rotates: true, NodesBecomeReady: true,
		OtherControlPlanes: []cluster.Machine{cluster.MachineAt("theirs", step.ControlPlane, "10.0.0.1")},
	}

	for _, c := range []struct {
		has, others, wanted rotation.Keys
		operations          string
	}{
		{old, old, used, "[apply configuration to cp-2 (no reboot): use new Talos CA, use new Kubernetes CA, use new cluster token]"},
		{used, used, dropped, "[apply configuration to cp-2 (no reboot): drop former Talos CA, drop former Kubernetes CA]"},
		{used, old, dropped, "[]"}, // they present certificates of the former ones
	} {
		want.Machines[0].Keys = c.wanted
		want.OtherHolders = rotation.Cluster{{Name: "theirs", ControlPlane: true, Keys: c.others, Settled: true}}

		steps, _ := cluster.Forecast(want, cluster.Assume(want, map[string]step.MachineState{"cp-2": {
			Access: step.Member, Role: step.ControlPlane, Stage: step.StageRunning, Ready: true, ConfigDigest: "d",
			Keys: c.has,
		}}), cluster.DefaultPolicy())

		if got := fmt.Sprint(steps); got != c.operations {
			t.Errorf("%s beside %s: %s, want %s", c.has, c.others, got, c.operations)
		}
	}
}

// Workers forecast what they can do after their control planes made every move that the workers permit, and nothing
// that only the next apply does.
func TestForecast_keysOfWorkersBehindTheirControlPlanes(t *testing.T) {
	want := cluster.Spec{
		Machines: []cluster.Machine{{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"}, Configured: cluster.Configured{ConfigDigest: "d"}}},
		Rotates:  true, NodesBecomeReady: true, Bootstrapped: true,
	}
	accept, use := "[apply configuration to w-1 (no reboot): accept new Talos CA, accept new Kubernetes CA]",
		"[apply configuration to w-1 (no reboot): use new Talos CA, use new Kubernetes CA, use new cluster token]"

	for _, c := range []struct{ has, others, wanted, operations string }{
		{"old", "", "old+new", accept},
		{"old", "", "new+old", strings.Replace(accept, "]", ", use new cluster token]", 1)},
		{"old", "old", "old+new", accept},
		{"old+new", "old+new", "new+old", use},
		{"new+old", "new+old", "new", "[apply configuration to w-1 (no reboot): drop former Talos CA, drop former Kubernetes CA]"},
	} {
		want.Machines[0].Keys = keysOf(c.wanted)
		want.OtherHolders = rotation.Cluster{{Name: "theirs", ControlPlane: true, Settled: true}}

		if c.others != "" {
			want.OtherHolders[0].Keys = keysOf(c.others)
		}

		steps, _ := cluster.Forecast(want, cluster.Assume(want, map[string]step.MachineState{"w-1": {
			Access: step.Member, Role: step.Worker, Stage: step.StageRunning, Ready: true, ConfigDigest: "d",
			Keys: keysOf(c.has),
		}}), cluster.DefaultPolicy())

		if got := fmt.Sprint(steps); got != c.operations {
			t.Errorf("%s behind %q to %s: %s, want %s", c.has, c.others, c.wanted, got, c.operations)
		}
	}
}

// A control plane uses other Kubernetes keys when its API server was restarted. It does not while Talos has not
// recreated it yet, although for a moment everything looks unchanged.
func TestNotReady_beforeTalosMakesPodsForOtherKeys(t *testing.T) {
	m := cluster.MachineAt("cp-1", step.ControlPlane, "10.0.0.1")
	want := cluster.Spec{Machines: []cluster.Machine{m}, Bootstrapped: true, NodesBecomeReady: true}
	have := cluster.Assume(want, map[string]step.MachineState{"cp-1": {
		Access: step.Member, Role: step.ControlPlane, Stage: step.StageRunning, Ready: true,
	}})

	for _, c := range []struct{ before, wanted, runs, reason string }{
		{"", "a", "a", ""},
		{"a", "a", "a", "its kube-apiserver does not use its new configuration yet"},
		{"a", "b", "a", "its kube-apiserver does not use its new configuration yet"},
		{"a", "b", "b", ""},
	} {
		s := have.Machines["cp-1"]
		s.StaticPods = map[string]string{"kube-apiserver": c.wanted}
		s.StampsBefore = nil

		if c.before != "" {
			s.StampsBefore = map[string]string{"kube-apiserver": c.before}
		}

		have.Machines["cp-1"] = s
		have.Kubernetes.Nodes[0].StaticPods = map[string]kubestate.StaticPod{"kube-apiserver": {Stamp: c.runs, Ready: true}}

		if got := cluster.NotReady(want, have, m); got != c.reason {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
