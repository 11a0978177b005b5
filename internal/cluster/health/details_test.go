package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

func TestOfEtcd_troubleOfTheWholeCluster(t *testing.T) {
	t.Parallel()

	for condition, want := range map[string]bool{
		health.EtcdQuorum: true, health.EtcdAgreement: true, health.EtcdNoAlarms: true, health.MachineReady: false,
		health.KubernetesAPI: false, health.EtcdMembersHealthy: false,
	} {
		if got := (health.Trouble{Condition: condition}).OfEtcd(); got != want {
			t.Errorf("%s: %t", condition, got)
		}
	}
}

// What a warning lists as silent, with the reasons, and whether anything answered.
func TestHealth_namesWhatIsSilent(t *testing.T) {
	t.Parallel()

	with := func(change func(*step.MachineState)) func(*watched) {
		return func(w *watched) {
			s := w.have.Machines["10.0.0.1"]
			change(&s)
			w.have.Machines["10.0.0.1"] = s
		}
	}

	for name, test := range map[string]struct {
		breaks  func(*watched)
		want    []string
		reached bool
	}{
		"nothing": {func(*watched) {}, nil, true},
		"a machine without a cause": {with(func(s *step.MachineState) { s.Access = step.Unreachable }),
			[]string{"cp-1 (10.0.0.1) does not respond: timed out waiting for a response"}, true},
		"one in maintenance mode": {with(func(s *step.MachineState) { s.Access = step.Maintenance }),
			[]string{"cp-1 (10.0.0.1) waits in maintenance mode"}, true},
		"a pod that is gone": {with(func(s *step.MachineState) { s.Access = step.Gone }),
			[]string{"cp-1 (10.0.0.1) does not exist"}, true},
		"Kubernetes": {func(w *watched) { w.have.Kubernetes = kubestate.State{Cause: "connection refused"} },
			[]string{"Kubernetes API: connection refused"}, true},
		"Kubernetes without a cause": {func(w *watched) { w.have.Kubernetes = kubestate.State{} },
			[]string{"Kubernetes API: timed out waiting for a response"}, true},
		"the endpoint": {func(w *watched) { w.have.Kubernetes.Endpoint = silent },
			[]string{"endpoint https://10.0.0.10:6443: connection refused"}, true},
		"etcd": {func(w *watched) { w.have.Etcd.Known, w.have.Etcd.Cause = false, "no leader" },
			[]string{"etcd: no leader"}, true},
		"all": {(*watched).allSilent, []string{
			"10.0.0.1 does not respond: read tcp 10.9.9.9:51234->10.0.0.1: i/o timeout",
			"10.0.0.2 does not respond: read tcp 10.9.9.9:51234->10.0.0.2: i/o timeout",
			"Kubernetes API: https://10.0.0.1:6443: connection refused"}, false},
	} {
		w := newWatched()
		test.breaks(w)

		h := w.of()
		if diff := cmp.Diff(test.want, h.Silent); diff != "" || h.Reached != test.reached {
			t.Errorf("%s: reached %t (-want +got):\n%s", name, h.Reached, diff)
		}
	}
}

func TestHealth_summary(t *testing.T) {
	t.Parallel()

	w := newWatched()
	if got := w.of().Summary(); got != "Ready" {
		t.Errorf("%q", got)
	}

	w.have.Kubernetes.Endpoint = silent
	if got := w.of().Summary(); got != "Degraded: EndpointReachable is False (https://10.0.0.10:6443 does not respond)" {
		t.Errorf("%q", got)
	}
}

func TestHealth_listsStagedNodes(t *testing.T) {
	t.Parallel()

	w := newWatched()
	if got := w.of().Staged; got == nil || len(got) > 0 {
		t.Errorf("none is staged: %#v", got)
	}

	w.have.Kubernetes.Nodes[1].Staged, w.have.Kubernetes.Nodes[3].Staged = true, true
	if got := w.of().Staged; !slices.Equal(got, []string{"cp-2", "w-1"}) {
		t.Errorf("two are staged: %q", got)
	}

	w.have.Kubernetes.Reachable = false
	if got := w.of().Staged; got != nil {
		t.Errorf("it is unknown: %q", got)
	}
}

func condition(t *testing.T, h health.Cluster, name string) health.Condition {
	t.Helper()

	i := slices.IndexFunc(h.Conditions, func(c health.Condition) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no condition %s", name)
	}

	return h.Conditions[i]
}

// A machine that answers at a shared address, too, is one machine. Silent ones may be several.
func TestHealth_machineAtTwoAddresses(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		state step.MachineState
		want  string
	}{
		"the same":       {newWatched().have.Machines["10.0.0.2"], "reachable control planes: 3"},
		"a nameless one": {step.MachineState{Access: step.Member, Role: step.ControlPlane}, "reachable control planes: 4"},
	} {
		w := newWatched()
		w.want.Machines = append(w.want.Machines, cluster.MachineAt("10.0.0.100", step.ControlPlane, "10.0.0.100"))
		w.have.Machines["10.0.0.100"] = test.state

		if got := condition(t, w.of(), health.TalosAPIReachable).Reason; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	w := newWatched()
	for _, address := range []string{"10.0.0.100", "10.0.0.101"} {
		w.want.Machines = append(w.want.Machines, cluster.MachineAt(address, step.ControlPlane, address))
		w.have.Machines[address] = step.MachineState{Access: step.Unreachable, NodeName: "cp-9"}
	}

	if got := condition(t, w.of(), health.TalosAPIReachable).Reason; strings.Count(got, "does not respond") != 2 {
		t.Errorf("two silent ones: %q", got)
	}
}

func TestHealth_endpointOutOfReach(t *testing.T) {
	t.Parallel()

	w := newWatched()
	w.have.Kubernetes.Endpoint = kubestate.Endpoint{OutOfReach: true}

	if got := condition(t, w.of(), health.EndpointReachable); got.Status != health.True || got.Reason !=
		"the endpoint is not checked: unreachable_endpoints of the provider lists it" {
		t.Errorf("%+v", got)
	}
}

func TestHealth_namesTheFirstOfMany(t *testing.T) {
	t.Parallel()

	for silentOnes, want := range map[int]string{20: "does not respond", 21: "1 more", 23: "3 more"} {
		w := newWatched()
		w.allSilent()
		w.want.Machines = nil

		for i := range silentOnes {
			address := fmt.Sprintf("10.0.1.%d", 100+i)
			w.want.Machines = append(w.want.Machines, cluster.MachineAt(address, step.ControlPlane, address))
			w.have.Machines[address] = step.MachineState{Access: step.Unreachable}
		}

		if got := condition(t, w.of(), health.TalosAPIReachable).Reason; !strings.HasSuffix(got, want) ||
			strings.Count(got, "does not respond") != 20 {
			t.Errorf("%d: %q, want %q at the end", silentOnes, got, want)
		}
	}
}

func TestTroubles_ofOneMachine(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		breaks func(*watched)
		want   string
	}{
		"its member has no leader": {func(w *watched) {
			w.view("a2", func(v *etcdstate.View) { v.Leader, v.Errors = "", []string{"etcdserver: no leader"} })
		}, "its etcd member has no leader"},
		"an alarm, which concerns the cluster": {func(w *watched) {
			w.view("a2", func(v *etcdstate.View) { v.Alarms = []string{"NOSPACE on a2"} })
		}, ""},
		"its mark is left on a node in service": {func(w *watched) { w.have.Kubernetes.Nodes[1].Cordoned = true }, ""},
		"another identity": {func(w *watched) {
			s := w.have.Machines["10.0.0.2"]
			s.Access = step.Foreign
			w.have.Machines["10.0.0.2"] = s
		}, "is not a member of the cluster yet"},
	} {
		w := newWatched()
		for address, member := range map[string]string{"10.0.0.1": "a1", "10.0.0.2": "a2"} {
			s := w.have.Machines[address]
			s.MemberID = member
			w.have.Machines[address] = s
		}

		test.breaks(w)

		got := ""

		for _, trouble := range health.TroublesOf(w.want, w.have) {
			if trouble.Machine == "10.0.0.2" {
				got += trouble.Reason
			}
		}

		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestHealth_alarmsOfSeveralMembers(t *testing.T) {
	t.Parallel()

	w := newWatched()
	for _, id := range []string{"a1", "a2", "a3"} {
		w.view(id, func(v *etcdstate.View) { v.Alarms = []string{"NOSPACE on a3", "CORRUPT on a1"} })
	}

	if got := health.OfEtcd(w.want, w.have).Alarms; !slices.Equal(got, []string{"CORRUPT on cp-1", "NOSPACE on cp-3"}) {
		t.Errorf("%q", got)
	}
}

func TestHealth_ofMembersWithoutAList(t *testing.T) {
	t.Parallel()

	w := newWatched()

	for _, m := range health.OfEtcd(w.want, w.have).Members {
		if m.Leader != (m.Name == "cp-2") {
			t.Errorf("%s leads: %t", m.Name, m.Leader)
		}
	}

	w.have.Etcd.Known, w.have.Etcd.Members, w.have.Peers = false, nil, nil

	const cause = "no control plane returns the etcd member list"
	if got := health.OfEtcd(w.want, w.have).Cause; got != cause {
		t.Errorf("%q", got)
	}

	if got := condition(t, w.of(), health.EtcdMembersHealthy); got.Status != health.Unknown || got.Reason != cause {
		t.Errorf("%+v", got)
	}
}

func TestHealth_controlPlaneThatIsAWorker(t *testing.T) {
	t.Parallel()

	w := newWatched()
	s := w.have.Machines["10.0.0.1"]
	s.Role = step.Worker
	w.have.Machines["10.0.0.1"] = s

	if got := condition(t, w.of(), health.ControlPlanesReady); got.Status != health.False ||
		got.Reason != "cp-1 (10.0.0.1) is a worker" {
		t.Errorf("%+v", got)
	}
}

// Machines are in the order of their titles: control planes, and then nodes by role and name.
func TestHealth_orderOfMachines(t *testing.T) {
	t.Parallel()

	w := newWatched()
	w.have.Etcd.Members[0].Name = "cp-0"
	w.have.Peers["a3"] = step.MachineState{Access: step.Unreachable}
	w.have.Kubernetes.Nodes = append([]kubestate.Node{{Name: "w-9", Ready: true}, {Name: "w-0", Ready: true},
		{Name: "x", ControlPlane: true, Addresses: []string{"10.0.0.1"}}}, w.have.Kubernetes.Nodes...)

	var got, silentOnes []string

	for _, m := range w.of().Machines {
		got = append(got, m.Name)

		if m.Silent {
			silentOnes = append(silentOnes, m.Name)
		}
	}

	if !slices.Equal(got, []string{"cp-0", "cp-1", "cp-2", "x", "cp-3", "w-0", "w-1", "w-9"}) {
		t.Errorf("%q", got)
	}

	if !slices.Equal(silentOnes, []string{"cp-0"}) {
		t.Errorf("silent: %q", silentOnes)
	}
}

func TestHealth_memberIsMissing(t *testing.T) {
	t.Parallel()

	for known, want := range map[bool]health.Status{true: health.False, false: health.Unknown} {
		w := newWatched()
		w.have.Etcd.Members, w.have.Etcd.Known = slices.Delete(w.have.Etcd.Members, 1, 2), known

		if got := w.of().Machines[0]; got.Name != "cp-1" || got.Status != want {
			t.Errorf("etcd known %t: %s is %s, want %s", known, got.Name, got.Status, want)
		}
	}
}

// The members of other resources, and views that were not read, are no trouble of a machine.
func TestTroubles_ofViews(t *testing.T) {
	t.Parallel()

	for name, breaks := range map[string]func(*watched){
		"a member of another resource follows another leader": func(w *watched) {
			w.view("a3", func(v *etcdstate.View) { v.Leader = "a1" })
		},
		"no views were read": func(w *watched) { w.have.Etcd.Views = nil },
		"a worker": func(w *watched) {
			w.want.Machines = append(w.want.Machines, cluster.MachineAt("w-1", step.Worker, "10.0.0.9"))
			w.have.Machines["w-1"] = step.MachineState{Access: step.Member, Role: step.Worker, Stage: step.StageRunning, Ready: true,
				NodeName: "w-1"}
		},
	} {
		w := newWatched()
		for address, member := range map[string]string{"10.0.0.1": "a1", "10.0.0.2": "a2"} {
			s := w.have.Machines[address]
			s.MemberID = member
			w.have.Machines[address] = s
		}

		breaks(w)

		if got := health.TroublesOf(w.want, w.have); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
