package health_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// watched is a healthy cluster of three control planes, a worker and an etcd; two machines are in the spec. A test
// breaks it.
type watched struct {
	want    cluster.Spec
	have    cluster.Snapshot
	talosCA kubestate.Certificate
}

// The times of the nodes: all are Ready since the newest.
var (
	oldest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	newest = oldest.Add(time.Hour)
)

// An endpoint as a client observed it.
var (
	answering = kubestate.Endpoint{URL: "https://10.0.0.10:6443", Asked: true}
	silent    = kubestate.Endpoint{URL: "https://10.0.0.10:6443", Asked: true, Cause: "connection refused"}
)

// day is the lifetime of the certificates that Talos makes for its API.
const day = 24 * time.Hour

func lasting(since time.Time, lifetime time.Duration) kubestate.Certificate {
	return kubestate.Certificate{NotBefore: since, NotAfter: since.Add(lifetime)}
}

// of evaluates the cluster with the authority of its secrets, a month before certificates expire.
func (w *watched) of() health.Cluster {
	return health.Of(w.want, w.have, health.Expiry{
		Authorities: []health.Certificate{{Name: "Talos CA", Certificate: w.talosCA}}, Within: 30 * day,
	})
}

func newWatched() *watched {
	running := func(node string) step.MachineState {
		return step.MachineState{Access: step.Member, Role: step.ControlPlane, Stage: step.StageRunning,
			Ready: true, NodeName: node, Certificate: lasting(oldest, day)}
	}
	member := func(id, name, host string) etcdstate.Member {
		return etcdstate.Member{ID: id, Name: name, PeerURLs: []string{"https://" + host + ":2380"}}
	}
	view := func(id string) etcdstate.View {
		return etcdstate.View{Member: id, Leader: "a2", Members: []string{"a1", "a2", "a3"}}
	}
	node := func(name string, since time.Time) kubestate.Node {
		return kubestate.Node{Name: name, Ready: true, ReadyReason: "KubeletReady", ReadySince: since}
	}

	return &watched{
		want: cluster.Spec{Name: "prod", Machines: []cluster.Machine{
			cluster.MachineAt("10.0.0.1", step.ControlPlane, "10.0.0.1"),
			cluster.MachineAt("10.0.0.2", step.ControlPlane, "10.0.0.2"),
		}},
		talosCA: lasting(oldest, 3650*day),
		have: cluster.Snapshot{
			Time:     newest,
			Machines: map[string]step.MachineState{"10.0.0.1": running("cp-1"), "10.0.0.2": running("cp-2")},
			Peers:    map[string]step.MachineState{"a3": running("cp-3")},
			Etcd: etcdstate.State{
				Known: true,
				Members: []etcdstate.Member{member("a3", "cp-3", "10.0.0.3"), member("a1", "cp-1", "10.0.0.1"),
					member("a2", "cp-2", "10.0.0.2")},
				Views: map[string]etcdstate.View{"a1": view("a1"), "a2": view("a2"), "a3": view("a3")},
			},
			Kubernetes: kubestate.State{Reachable: true, Endpoint: answering, Nodes: []kubestate.Node{
				node("cp-1", oldest), node("cp-2", newest), node("cp-3", oldest), node("w-1", oldest),
			}, Certificates: []kubestate.ServerCertificate{{URL: "https://10.0.0.1:6443", Certificate: lasting(oldest, 365*day)}}},
		},
	}
}

// silent removes a machine of the spec, its member and its node.
func (w *watched) silent(address, member string) {
	w.have.Machines[address] = step.MachineState{Access: step.Unreachable,
		Cause: "read tcp 10.9.9.9:51234->" + address + ": i/o timeout"}
	delete(w.have.Etcd.Views, member)
}

func (w *watched) view(member string, change func(*etcdstate.View)) {
	v := w.have.Etcd.Views[member]
	change(&v)
	w.have.Etcd.Views[member] = v
}

func (w *watched) allSilent() {
	w.silent("10.0.0.1", "a1")
	w.silent("10.0.0.2", "a2")
	w.have.Peers = nil
	w.have.Etcd = etcdstate.State{Views: map[string]etcdstate.View{}}
	w.have.Kubernetes = kubestate.State{Cause: "https://10.0.0.1:6443: connection refused", Endpoint: silent}
}

func (w *watched) leaderless() {
	w.have.Etcd.Known, w.have.Etcd.Members, w.have.Peers = false, nil, nil
	w.have.Etcd.Cause = "member a1 on 10.0.0.1 has no leader"
	delete(w.have.Etcd.Views, "a3")

	for _, id := range []string{"a1", "a2"} {
		w.view(id, func(v *etcdstate.View) {
			v.Leader, v.Members, v.Errors = "", nil, []string{"etcdserver: no leader"}
		})
	}
}

const (
	noAnswerOfEtcd = "10.0.0.1 does not respond, 10.0.0.2 does not respond"
	noNodes        = "the Kubernetes API does not list the nodes"
	noneShown      = "the Kubernetes API presents no certificate"
	noEndpoint     = "EndpointReachable False: https://10.0.0.10:6443 does not respond"
)

// TestHealth_conditionsThatAreNotTrue lists the conditions of each cluster that are not True.
func TestHealth_conditionsThatAreNotTrue(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		breaks  func(*watched)
		wrong   []string
		summary string
	}{
		"all is well": {breaks: func(*watched) {}, summary: "Ready"},
		"a control plane is silent": {
			breaks: func(w *watched) { w.silent("10.0.0.1", "a1") },
			wrong: []string{
				"TalosAPIReachable False: cp-1 (10.0.0.1) does not respond",
				"ControlPlanesReady Unknown: cp-1 (10.0.0.1) does not respond",
				"EtcdMembersHealthy False: cp-1 its machine does not respond",
				"CertificatesValid Unknown: cp-1 (10.0.0.1) does not respond",
			},
			summary: "Degraded: TalosAPIReachable is False (cp-1 (10.0.0.1) does not respond); ",
		},
		"one that only etcd knows is silent": {
			breaks: func(w *watched) { w.have.Peers = nil; delete(w.have.Etcd.Views, "a3") },
			wrong: []string{
				"TalosAPIReachable False: cp-3 (10.0.0.3) does not respond",
				"ControlPlanesReady Unknown: cp-3 (10.0.0.3) does not respond",
				"EtcdMembersHealthy False: cp-3 its machine does not respond",
				"CertificatesValid Unknown: cp-3 (10.0.0.3) does not respond",
			},
		},
		"no machine answers": {
			breaks: (*watched).allSilent,
			wrong: []string{
				"TalosAPIReachable False: " + noAnswerOfEtcd,
				"ControlPlanesReady Unknown: " + noAnswerOfEtcd,
				"EtcdQuorum Unknown: " + noAnswerOfEtcd,
				"EtcdMembersHealthy Unknown: " + noAnswerOfEtcd,
				"EtcdAgreement Unknown: no member follows a leader",
				"EtcdNoAlarms Unknown: no member follows a leader",
				"KubernetesAPI False: " + noNodes, noEndpoint, "NodesReady Unknown: " + noNodes,
				"NodesSchedulable Unknown: " + noNodes,
				"CertificatesValid Unknown: " + noAnswerOfEtcd + ", " + noneShown,
			},
			summary: "Unreachable: ",
		},
		"no known control plane": {
			breaks: func(w *watched) { w.allSilent(); w.want.Machines = nil },
			wrong: []string{
				"TalosAPIReachable Unknown: no known control plane", "ControlPlanesReady Unknown: no known control plane",
				"EtcdQuorum Unknown: no known control plane", "EtcdMembersHealthy Unknown: no known control plane",
				"EtcdAgreement Unknown: no member follows a leader",
				"EtcdNoAlarms Unknown: no member follows a leader",
				"KubernetesAPI False: " + noNodes, noEndpoint, "NodesReady Unknown: " + noNodes,
				"NodesSchedulable Unknown: " + noNodes,
				"CertificatesValid Unknown: no known control plane, " + noneShown,
			},
		},
		"the quorum is lost": {
			breaks: (*watched).leaderless,
			wrong: []string{
				"EtcdQuorum False: member a1 has no leader, member a2 has no leader",
				"EtcdMembersHealthy False: a1 has no leader and etcdserver: no leader, a2 has no leader and etcdserver: " +
					"no leader",
				"EtcdAgreement Unknown: no member follows a leader",
				"EtcdNoAlarms Unknown: no member follows a leader",
			},
		},
		"a member is cut off": {
			breaks: func(w *watched) {
				w.view("a3", func(v *etcdstate.View) { v.Leader, v.Members = "", nil })
			},
			wrong: []string{
				"EtcdMembersHealthy False: cp-3 has no leader",
				"EtcdAgreement False: cp-1 follows cp-2, but cp-3 has no leader",
			},
		},
		"there are two leaders": {
			breaks: func(w *watched) { w.view("a3", func(v *etcdstate.View) { v.Leader = "a3" }) },
			wrong:  []string{"EtcdAgreement False: cp-1 follows cp-2, but cp-3 follows cp-3"},
		},
		"members know different members": {
			breaks: func(w *watched) { w.view("a2", func(v *etcdstate.View) { v.Members = []string{"a2"} }) },
			wrong:  []string{"EtcdAgreement False: cp-1 and cp-2 report different members"},
		},
		"an alarm is raised, which every member reports as an error, and one reports another": {
			breaks: func(w *watched) {
				for _, id := range []string{"a1", "a2", "a3"} {
					w.view(id, func(v *etcdstate.View) {
						v.Alarms, v.Errors = []string{"NOSPACE on a1"}, []string{"memberID:161 alarm:NOSPACE "}
					})
				}

				w.view("a2", func(v *etcdstate.View) { v.Errors = append(v.Errors, "cannot write") })
			},
			wrong: []string{
				"EtcdMembersHealthy False: cp-1 raised the alarm NOSPACE, cp-2 cannot write",
				"EtcdNoAlarms False: NOSPACE on cp-1",
			},
		},
		"a member is a learner": {
			breaks: func(w *watched) { w.have.Etcd.Members[0].Learner = true; delete(w.have.Etcd.Views, "a3") },
			wrong:  []string{"EtcdMembersHealthy False: cp-3 is a learner and does not vote yet"},
		},
		"a control plane has no member": {
			breaks: func(w *watched) {
				w.have.Etcd.Members = w.have.Etcd.Members[:2]
				w.have.Machines["10.0.0.2"] = step.MachineState{
					Access: step.Member, Role: step.ControlPlane, Stage: step.StageBooting, NodeName: "cp-2",
				}
				w.have.Etcd.Views = map[string]etcdstate.View{
					"a1": {Member: "a1", Leader: "a1", Members: []string{"a1", "a3"}},
					"a3": {Member: "a3", Leader: "a1", Members: []string{"a1", "a3"}},
				}
			},
			wrong: []string{"ControlPlanesReady False: cp-2 (10.0.0.2) is in stage booting",
				"EtcdMembersHealthy False: cp-2 (10.0.0.2) has no member"},
		},
		"a control plane was wiped, and another is not ready": {
			breaks: func(w *watched) {
				w.silent("10.0.0.1", "a1")
				w.have.Machines["10.0.0.1"] = step.MachineState{Access: step.Maintenance}
				s := w.have.Machines["10.0.0.2"]
				s.Ready, s.Unmet = false, []string{"services: kubelet not healthy"}
				w.have.Machines["10.0.0.2"] = s
			},
			wrong: []string{
				"TalosAPIReachable False: cp-1 (10.0.0.1) waits in maintenance mode",
				"ControlPlanesReady False: cp-1 (10.0.0.1) waits in maintenance mode, cp-2 (10.0.0.2) is not ready (services: " +
					"kubelet not healthy)",
				"EtcdMembersHealthy False: cp-1 its machine waits in maintenance mode",
			},
		},
		"a foreign machine has the address, and another is a worker": {
			breaks: func(w *watched) {
				w.silent("10.0.0.1", "a1")
				w.have.Machines["10.0.0.1"] = step.MachineState{Access: step.Foreign}
				w.want.Machines = append(w.want.Machines,
					cluster.MachineAt("10.0.0.9", step.ControlPlane, "10.0.0.9"))
				w.have.Machines["10.0.0.9"] = step.MachineState{
					Access: step.Member, Role: step.Worker, Stage: step.StageRunning, Ready: true, NodeName: "w-1",
				}
			},
			wrong: []string{
				"TalosAPIReachable False: cp-1 (10.0.0.1) responds with another identity",
				"ControlPlanesReady False: cp-1 (10.0.0.1) responds with another identity, w-1 (10.0.0.9) is a worker",
				"EtcdMembersHealthy False: cp-1 its machine responds with another identity",
			},
		},
		"one machine answers at two addresses": {
			breaks: func(w *watched) {
				w.want.Machines = append(w.want.Machines,
					cluster.MachineAt("10.0.0.10", step.ControlPlane, "10.0.0.10"))
				w.have.Machines["10.0.0.10"] = w.have.Machines["10.0.0.1"]
			},
		},
		"only the Kubernetes API is silent": {
			breaks: func(w *watched) { w.have.Kubernetes = kubestate.State{Cause: "connection refused"} },
			wrong: []string{"KubernetesAPI False: " + noNodes, "EndpointReachable Unknown: the endpoint was not checked",
				"NodesReady Unknown: " + noNodes,
				"NodesSchedulable Unknown: " + noNodes, "CertificatesValid Unknown: " + noneShown},
		},
		"the Kubernetes API lists the nodes, and a server is not ready": {
			breaks: func(w *watched) {
				w.have.Kubernetes.Unready = []kubestate.UnreadyServer{{URL: "https://10.0.0.2:6443", Checks: []string{"etcd"}}}
			},
			wrong: []string{"KubernetesAPI False: https://10.0.0.2:6443 is not ready (etcd)"},
		},
		"only the endpoint is silent": {
			breaks:  func(w *watched) { w.have.Kubernetes.Endpoint = silent },
			wrong:   []string{noEndpoint},
			summary: "Degraded: EndpointReachable is False (https://10.0.0.10:6443 does not respond)",
		},
		"the endpoint is out of reach": {
			breaks: func(w *watched) { w.have.Kubernetes.Endpoint = kubestate.Endpoint{OutOfReach: true} },
		},
		"there are no nodes": {
			breaks: func(w *watched) { w.have.Kubernetes.Nodes = nil },
			wrong:  []string{"NodesReady Unknown: there are no nodes", "NodesSchedulable Unknown: there are no nodes"},
		},
		"nodes are not ready and cordoned": {
			breaks: func(w *watched) {
				nodes := w.have.Kubernetes.Nodes
				nodes[1].Ready, nodes[1].ReadyReason = false, "KubeletNotReady"
				nodes[2].Unschedulable, nodes[2].Cordoned = true, true
				nodes[3].Unschedulable = true
			},
			wrong: []string{"NodesReady False: cp-2 (KubeletNotReady)",
				"NodesSchedulable False: cp-3 (cordoned by talosop), w-1"},
		},
		"certificates end soon": {
			breaks: func(w *watched) {
				w.talosCA = lasting(newest.Add(-3640*day), 3660*day)
				w.have.Kubernetes.Certificates[0].Certificate = lasting(newest.Add(-340*day), 365*day)
			},
			wrong: []string{"CertificatesValid False: Talos CA is valid until 2026-01-21T01:00:00Z, Kubernetes API of " +
				"https://10.0.0.1:6443 is valid until 2026-01-26T01:00:00Z"},
		},
		"Talos did not renew one, and another has ended": {
			breaks: func(w *watched) {
				s := w.have.Machines["10.0.0.2"]
				s.Certificate = lasting(newest.Add(-16*time.Hour), day)
				w.have.Machines["10.0.0.2"] = s
				w.silent("10.0.0.1", "a1")
				s = w.have.Machines["10.0.0.1"]
				s.Certificate = lasting(newest.Add(-25*time.Hour), day)
				w.have.Machines["10.0.0.1"] = s
			},
			wrong: []string{
				"TalosAPIReachable False: cp-1 (10.0.0.1) does not respond",
				"ControlPlanesReady Unknown: cp-1 (10.0.0.1) does not respond",
				"EtcdMembersHealthy False: cp-1 its machine does not respond",
				"CertificatesValid False: Talos API of cp-1 (10.0.0.1) is valid until 2026-01-01T00:00:00Z, Talos API of cp-2 " +
					"(10.0.0.2) is valid until 2026-01-01T09:00:00Z",
			},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWatched()
			test.breaks(w)

			got := w.of()

			var wrong []string

			for _, c := range got.Conditions {
				if c.Reason == "" {
					t.Errorf("%s has no reason", c.Name)
				}

				if c.Status != health.True {
					wrong = append(wrong, c.Name+" "+string(c.Status)+": "+c.Reason)
				}
			}

			if diff := cmp.Diff(test.wrong, wrong); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}

			if got.Healthy() != (len(test.wrong) == 0) || !strings.HasPrefix(got.Summary(), test.summary) {
				t.Errorf("healthy is %t, the summary %q", got.Healthy(), got.Summary())
			}
		})
	}
}

// The list of conditions is always the same, because checks look them up by name.
func TestHealth_hasEveryCondition(t *testing.T) {
	t.Parallel()

	want := []string{
		"TalosAPIReachable", "ControlPlanesReady", "EtcdQuorum", "EtcdMembersHealthy", "EtcdAgreement", "EtcdNoAlarms",
		"KubernetesAPI", "EndpointReachable", "NodesReady", "NodesSchedulable", "CertificatesValid",
	}

	for _, h := range []health.Cluster{health.Of(cluster.Spec{}, cluster.Snapshot{}, health.Expiry{}),
		newWatched().of()} {
		var names []string
		for _, c := range h.Conditions {
			names = append(names, c.Name)
		}

		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
}

// The order of certificates is stable.
func TestHealth_listsCertificates(t *testing.T) {
	t.Parallel()

	w := newWatched()
	w.have.Kubernetes.Certificates[0].Certificate = lasting(newest.Add(-340*day), 365*day)

	var got []string
	for _, c := range w.of().Certificates {
		got = append(got, fmt.Sprintf("%s|%s|%s|%t", c.Name, c.Server, c.NotAfter.Format(time.DateOnly), c.Due))
	}

	want := []string{
		"Talos CA||2035-12-30|false", "Talos API|cp-1 (10.0.0.1)|2026-01-02|false",
		"Talos API|cp-2 (10.0.0.2)|2026-01-02|false", "Talos API|cp-3 (10.0.0.3)|2026-01-02|false",
		"Kubernetes API|https://10.0.0.1:6443|2026-01-26|true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
}

// No attribute has what differs between two observations of the same cluster.
func TestHealth_isStable(t *testing.T) {
	t.Parallel()

	first, second := newWatched(), newWatched()
	first.silent("10.0.0.1", "a1")
	second.silent("10.0.0.1", "a1")

	down := second.have.Machines["10.0.0.1"]
	down.Cause, down.Since = "another port", newest
	second.have.Machines["10.0.0.1"] = down
	second.have.Time = newest
	slices.Reverse(second.have.Etcd.Members)

	a, b := first.of(), second.of()
	if diff := cmp.Diff(a.Conditions, b.Conditions); diff != "" {
		t.Errorf("the second reading differs:\n%s", diff)
	}

	if len(a.Silent) != 1 || !strings.Contains(a.Silent[0], "cp-1 (10.0.0.1) does not respond: read tcp") {
		t.Errorf("silent are %q", a.Silent)
	}
}

func TestHealth_knowsSinceWhen(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		breaks             func([]kubestate.Node)
		ready, schedulable time.Time
	}{
		"all are ready since the last is": {breaks: func([]kubestate.Node) {}, ready: newest},
		"not all since the first is not": {
			breaks: func(n []kubestate.Node) { n[0].Ready, n[1].Ready = false, false }, ready: oldest,
		},
		"one does not say": {breaks: func(n []kubestate.Node) { n[3].ReadySince = time.Time{} }},
		"cordoned, with a taint": {
			breaks: func(n []kubestate.Node) { n[3].Unschedulable, n[3].UnschedulableSince = true, newest }, ready: newest,
			schedulable: newest},
		"cordoned, the taint is to be": {breaks: func(n []kubestate.Node) { n[3].Unschedulable = true }, ready: newest},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWatched()
			test.breaks(w.have.Kubernetes.Nodes)

			since := map[string]time.Time{}
			for _, c := range w.of().Conditions {
				if !c.Since.IsZero() {
					since[c.Name] = c.Since
				}
			}

			want := map[string]time.Time{"NodesReady": test.ready, "NodesSchedulable": test.schedulable}
			maps.DeleteFunc(want, func(_ string, at time.Time) bool { return at.IsZero() })

			if diff := cmp.Diff(want, since); diff != "" {
				t.Errorf("since (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEtcdHealth_ofASilentMember(t *testing.T) {
	t.Parallel()

	w := newWatched()
	w.silent("10.0.0.1", "a1")

	got := health.OfEtcd(w.want, w.have)
	if !got.Reachable || got.Cause != "" || got.Quorum != 2 || got.Healthy() {
		t.Errorf("etcd is %+v", got)
	}

	var names []string
	for _, m := range got.Members {
		names = append(names, m.Name)

		if m.Leader != (m.Name == "cp-2") || (len(m.Errors) == 0) != (m.Name != "cp-1") {
			t.Errorf("member %+v", m)
		}
	}

	if !slices.Equal(names, []string{"cp-1", "cp-2", "cp-3"}) {
		t.Errorf("members are %v", names)
	}

	lost := newWatched()
	lost.leaderless()

	if got := health.OfEtcd(lost.want, lost.have); !got.Reachable || got.Quorum != 0 || len(got.Members) > 0 ||
		got.Cause == "" {
		t.Errorf("etcd without a quorum is %+v", got)
	}

	dead := newWatched()
	dead.allSilent()

	if got := health.OfEtcd(dead.want, dead.have); got.Reachable || got.Cause != noAnswerOfEtcd ||
		len(got.Silent) != 2 {
		t.Errorf("a silent etcd is %+v", got)
	}
}

// Each machine is listed once, whether it is known by its address, by etcd or as a node.
func TestHealth_machines(t *testing.T) {
	t.Parallel()

	const cp1, cp2, cp3, w1 = "cp-1 (10.0.0.1) True running ", "cp-2 (10.0.0.2) True running ",
		"cp-3 (10.0.0.3) True running ", "w-1 (10.0.0.9) True  v1.13.0"

	tests := map[string]struct {
		breaks func(*watched)
		want   []string
	}{
		"all is well": {breaks: func(*watched) {}, want: []string{cp1, cp2, cp3, w1}},
		"a control plane that does not respond has its node by its address": {
			breaks: func(w *watched) {
				w.silent("10.0.0.1", "a1")
				w.have.Etcd = etcdstate.State{}
				w.have.Peers = nil
				w.have.Kubernetes.Nodes[0].Addresses = []string{"10.0.0.1"}
				w.have.Kubernetes.Nodes[0].TalosVersion = "v1.12.0"
				w.have.Kubernetes.Nodes[2].ControlPlane = true
			},
			want: []string{"10.0.0.1 Unknown does not respond v1.12.0", "cp-2 (10.0.0.2) Unknown running ", "cp-3 True  ", w1},
		},
		"one is not ready, the node of another is missing, one has no member": {
			breaks: func(w *watched) {
				s := w.have.Machines["10.0.0.1"]
				s.Ready, s.Unmet = false, []string{"nodeReady"}
				w.have.Machines["10.0.0.1"] = s
				w.have.Kubernetes.Nodes = slices.Delete(w.have.Kubernetes.Nodes, 1, 2)
				w.have.Etcd.Members[0].Learner = true
			},
			want: []string{"cp-1 (10.0.0.1) False is not ready (nodeReady) ", "cp-2 (10.0.0.2) False running ",
				"cp-3 (10.0.0.3) False running ", w1},
		},
		"Kubernetes does not respond": {
			breaks: func(w *watched) { w.have.Kubernetes = kubestate.State{} },
			want: []string{"cp-1 (10.0.0.1) Unknown running ", "cp-2 (10.0.0.2) Unknown running ",
				"cp-3 (10.0.0.3) Unknown running "},
		},
		"a worker is cordoned, and runs something else": {
			breaks: func(w *watched) {
				w.have.Kubernetes.Nodes[3].Unschedulable = true
				w.have.Kubernetes.Nodes[3].TalosVersion = ""
			},
			want: []string{cp1, cp2, cp3, "w-1 (10.0.0.9) False  "},
		},
		"no machine answers": {
			breaks: (*watched).allSilent,
			want:   []string{"10.0.0.1 Unknown does not respond ", "10.0.0.2 Unknown does not respond "},
		},
	}

	for what, test := range tests {
		w := newWatched()
		w.have.Kubernetes.Nodes[3].Addresses = []string{"10.0.0.9"}
		w.have.Kubernetes.Nodes[3].TalosVersion = "v1.13.0"
		test.breaks(w)

		var got []string
		for _, m := range w.of().Machines {
			got = append(got, fmt.Sprintf("%s %s %s %s", m.Title, m.Status, m.Talos, m.TalosVersion))
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}
