package health_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// A resource with two of three control planes is responsible for these, for etcd as a whole and for the Kubernetes
// API, but not for the third.
func TestTroubles_ofWhatAResourceOwns(t *testing.T) {
	t.Parallel()

	first, second := "10.0.0.1", "10.0.0.2"
	trouble := func(condition, machine, reason string) health.Trouble {
		return health.Trouble{Condition: condition, Machine: machine, Reason: reason}
	}

	for name, test := range map[string]struct {
		breaks func(*watched)
		want   []health.Trouble
	}{
		"all is well": {func(*watched) {}, nil},
		"an own control plane is silent": {
			func(w *watched) { w.silent(first, "a1") },
			[]health.Trouble{trouble(health.MachineReady, first, "does not respond, and neither does its etcd member")},
		},
		"the one of another resource is silent": {
			func(w *watched) { w.have.Peers = nil; delete(w.have.Etcd.Views, "a3") }, nil,
		},
		"the node of another resource is not Ready": {
			func(w *watched) { w.have.Kubernetes.Nodes[2].Ready = false }, nil,
		},
		"an own node is not Ready": {
			func(w *watched) { w.have.Kubernetes.Nodes[1].Ready = false },
			[]health.Trouble{trouble(health.MachineReady, second, "its node cp-2 is not Ready yet")},
		},
		"people cordoned an own node": {
			func(w *watched) { w.have.Kubernetes.Nodes[1].Unschedulable = true }, nil,
		},
		"talosop left an own node cordoned": {
			func(w *watched) {
				w.have.Kubernetes.Nodes[1].Unschedulable, w.have.Kubernetes.Nodes[1].Cordoned = true, true
			},
			[]health.Trouble{trouble(health.MachineReady, second, "its node cp-2 is cordoned by talosop")},
		},
		"an own member says nothing": {
			func(w *watched) { delete(w.have.Etcd.Views, "a2") },
			[]health.Trouble{trouble(health.MachineReady, second, "its etcd member does not report its status")},
		},
		"an own member reports an error": {
			func(w *watched) { w.view("a2", func(v *etcdstate.View) { v.Errors = []string{"disk is slow"} }) },
			[]health.Trouble{trouble(health.MachineReady, second, "its etcd member reports: disk is slow")},
		},
		"own members follow different leaders": {
			func(w *watched) { w.view("a2", func(v *etcdstate.View) { v.Leader = "a1" }) },
			[]health.Trouble{trouble(health.EtcdAgreement, "", "cp-1 follows cp-2, but cp-2 follows cp-1")},
		},
		"an alarm of the member of another resource": {
			func(w *watched) {
				for _, id := range []string{"a1", "a2", "a3"} {
					w.view(id, func(v *etcdstate.View) { v.Alarms = []string{"NOSPACE on a3"} })
				}
			},
			[]health.Trouble{trouble(health.EtcdNoAlarms, "", "NOSPACE on cp-3")},
		},
		"no leader": {
			(*watched).leaderless,
			[]health.Trouble{
				trouble(health.EtcdQuorum, "", "member a1 has no leader, member a2 has no leader"),
				trouble(health.MachineReady, first, "waits for etcd"), trouble(health.MachineReady, second, "waits for etcd"),
			},
		},
		"no API server is ready": {
			func(w *watched) {
				w.have.Kubernetes.Unready = []kubestate.UnreadyServer{{Checks: []string{"kms-providers", "etcd"}}}
			},
			[]health.Trouble{trouble(health.KubernetesAPI, "", "kube-apiserver is not ready (kms-providers, etcd)")},
		},
		"no Kubernetes API": {
			func(w *watched) { w.have.Kubernetes = kubestate.State{Cause: "connection refused"} },
			[]health.Trouble{
				trouble(health.KubernetesAPI, "", noNodes), trouble(health.MachineReady, first, "waits for the Kubernetes API"),
				trouble(health.MachineReady, second, "waits for the Kubernetes API"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWatched()
			for address, member := range map[string]string{first: "a1", second: "a2"} {
				s := w.have.Machines[address]
				s.MemberID = member
				w.have.Machines[address] = s
			}

			test.breaks(w)

			if diff := cmp.Diff(test.want, health.TroublesOf(w.want, w.have)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}

			if healthy := w.of().Healthy(); healthy && len(test.want) > 0 {
				t.Errorf("the health data source calls it healthy")
			}
		})
	}
}

// A pool of workers asks no etcd member, and its silent machines are evaluated by their nodes.
func TestTroubles_ofWorkers(t *testing.T) {
	t.Parallel()

	w := newWatched()
	w.want.Machines = []cluster.Machine{cluster.MachineAt("batch-1", step.Worker, "10.0.0.9")}
	w.have.Etcd = etcdstate.State{}
	w.have.Machines = map[string]step.MachineState{"batch-1": {Access: step.Unreachable, NodeName: "w-1"}}

	w.have.Kubernetes.Unready = []kubestate.UnreadyServer{{Checks: []string{"etcd"}}} // trouble of the control planes

	if got := health.TroublesOf(w.want, w.have); got != nil {
		t.Errorf("a silent worker whose node is Ready: %v", got)
	}

	w.have.Kubernetes.Nodes[3].Ready = false

	want := []health.Trouble{{Condition: health.MachineReady, Machine: "batch-1",
		Reason: "does not respond, and its node w-1 is not Ready"}}
	if diff := cmp.Diff(want, health.TroublesOf(w.want, w.have)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A silent endpoint is reported for resources with control planes, unless the whole Kubernetes API is silent. No run
// waits for it.
func TestSilentEndpoint_ofWhatAResourceOwns(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		breaks func(*watched)
		want   bool
	}{
		"it answers":      {func(*watched) {}, false},
		"it does not":     {func(w *watched) { w.have.Kubernetes.Endpoint = silent }, true},
		"nothing answers": {(*watched).allSilent, false},
		"it is out of reach": {func(w *watched) {
			w.have.Kubernetes.Endpoint = silent
			w.have.Kubernetes.Endpoint.OutOfReach = true
		}, false},
		"workers alone": {func(w *watched) {
			w.have.Kubernetes.Endpoint = silent
			for i := range w.want.Machines {
				w.want.Machines[i].Role = step.Worker
			}
		}, false},
	} {
		w := newWatched()
		test.breaks(w)

		if got := health.SilentEndpoint(w.want, w.have); got != test.want {
			t.Errorf("%s: silent is %v", name, got)
		}

		if troubles := health.TroublesOf(w.want, w.have); test.want && len(troubles) > 0 {
			t.Errorf("%s: troubles are %v", name, troubles)
		}
	}
}
