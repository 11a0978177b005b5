package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// replacedPlanes is a cluster of control planes cp-1 to cp-n that are their own resources, as the removal of cp-1
// sees it.
func replacedPlanes(n int) (cluster.Spec, cluster.Snapshot) {
	want := cluster.Spec{Bootstrapped: true, NodesBecomeReady: true, OtherControlPlanes: []cluster.Machine{}}
	want.Joins, want.Replaced = true, true

	have := cluster.Snapshot{Time: time.Unix(1000, 0), Machines: map[string]step.MachineState{}}
	have.Kubernetes.Reachable, have.Kubernetes.Owners = true, map[string]string{}
	have.Etcd.Known, have.Etcd.Views = true, map[string]etcdstate.View{}

	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("cp-%d", i)
		m := cluster.MachineAt(name, step.ControlPlane, fmt.Sprintf("10.0.0.%d", i))

		if i == 1 {
			want.Removed = []cluster.Machine{m}
		} else {
			want.OtherControlPlanes = append(want.OtherControlPlanes, m)
		}

		have.Machines[name] = step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true,
			NodeName: name, MemberID: name, EtcdService: step.ServiceRunning, Run: step.Run{Since: time.Unix(0, 0)}}
		have.Etcd.Members = append(have.Etcd.Members, etcdstate.Member{ID: name, Name: name,
			PeerURLs: []string{"https://" + m.Address + ":2380"}})
		have.Etcd.Views[name] = etcdstate.View{Member: name, Leader: "cp-1"}
		have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, kubestate.Node{Name: name, Ready: true, ControlPlane: true})
	}

	return want, have
}

// leftEtcd takes a machine out of etcd, wiped for a while.
func leftEtcd(have *cluster.Snapshot, name string, since time.Duration) {
	have.Machines[name] = step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance,
		Run: step.Run{Since: have.Time.Add(-since)}}
	have.Etcd.Members = slices.DeleteFunc(have.Etcd.Members, func(m etcdstate.Member) bool { return m.ID == name })
	have.Kubernetes.Nodes = slices.DeleteFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == name })
}

// A replaced control plane leaves etcd while all others are in it, and waits for those that rejoin. The wait is
// limited, because their creates may wait for it.
func TestPlanRemoval_ofAReplacedControlPlane(t *testing.T) {
	t.Parallel()

	const soon, late = time.Minute, 20 * time.Minute

	rejoining := func(r cluster.Rejoining) func(*cluster.Spec, *cluster.Snapshot) {
		return func(_ *cluster.Spec, have *cluster.Snapshot) {
			r.Name = "cp-9"
			have.Rejoining = []cluster.Rejoining{r}
		}
	}
	at := func(ago time.Duration) time.Time { return time.Unix(1000, 0).Add(-ago) }

	for name, test := range map[string]struct {
		planes int
		given  func(*cluster.Spec, *cluster.Snapshot)
		want   string
	}{
		"all others work":  {3, nil, "leaves"},
		"the only one":     {1, nil, "ends"},
		"another one left": {3, func(_ *cluster.Spec, s *cluster.Snapshot) { leftEtcd(s, "cp-2", soon) }, "waits"},
		"it left long ago": {3, func(_ *cluster.Spec, s *cluster.Snapshot) { leftEtcd(s, "cp-2", late) }, "refused"},
		"all others left":  {3, func(_ *cluster.Spec, s *cluster.Snapshot) { leftEtcd(s, "cp-2", soon); leftEtcd(s, "cp-3", soon) }, "waits"},
		"the cluster shrank": {3, func(w *cluster.Spec, s *cluster.Snapshot) {
			leftEtcd(s, "cp-2", late)
			w.OtherControlPlanes = w.OtherControlPlanes[1:]
		}, "leaves"},
		"an address is listed twice": {3, func(w *cluster.Spec, s *cluster.Snapshot) {
			s.Peers = map[string]step.MachineState{"cp-2": s.Machines["cp-2"], "cp-3": s.Machines["cp-3"]}
			w.OtherControlPlanes = []cluster.Machine{cluster.MachineAt("vip", step.ControlPlane, "10.0.0.100")}
		}, "leaves"},
		"one that rejoins":      {3, rejoining(cluster.Rejoining{Since: at(soon)}), "waits"},
		"nothing creates it":    {3, rejoining(cluster.Rejoining{Since: at(late)}), "refused"},
		"its create takes long": {3, rejoining(cluster.Rejoining{Since: at(late), Joins: true}), "waits"},
		"its create failed":     {3, rejoining(cluster.Rejoining{Since: at(soon), Joins: true, Failed: true}), "refused"},
		"one that rejoins, on its way": {3, func(w *cluster.Spec, s *cluster.Snapshot) {
			leftEtcd(s, "cp-2", late)
			rejoining(cluster.Rejoining{Since: at(late), Joins: true})(w, s)
		}, "waits"},
		"one that is being wiped for long": {3, func(w *cluster.Spec, s *cluster.Snapshot) {
			leftEtcd(s, "cp-2", late)
			rejoining(cluster.Rejoining{})(w, s)
		}, "waits"},
		"removed for good beside one that rejoins": {3, func(w *cluster.Spec, s *cluster.Snapshot) {
			w.Replaced = false
			rejoining(cluster.Rejoining{Since: at(soon), Joins: true})(w, s)
		}, "waits"},
		"removed for good, the last one": {3, func(w *cluster.Spec, s *cluster.Snapshot) {
			w.Replaced = false
			leftEtcd(s, "cp-2", soon)
			leftEtcd(s, "cp-3", soon)
		}, "ends"},
		"no etcd answers": {3, func(_ *cluster.Spec, s *cluster.Snapshot) {
			s.Etcd = etcdstate.State{}
			s.Kubernetes = kubestate.State{Since: at(late)}
			leftEtcd(s, "cp-2", soon)
			leftEtcd(s, "cp-3", soon)
		}, "waits"},
		"it left etcd already": {3, func(_ *cluster.Spec, s *cluster.Snapshot) {
			s.Etcd.Members = s.Etcd.Members[1:]
			s.Machines["cp-1"] = step.MachineState{Access: step.Member, Stage: step.StageRunning, NodeName: "cp-1",
				EtcdService: step.ServiceFinished}
			leftEtcd(s, "cp-2", soon)
		}, "resets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			spec, have := replacedPlanes(test.planes)
			if test.given != nil {
				test.given(&spec, &have)
			}

			d := cluster.PlanRemoval(spec, have, cluster.DefaultPolicy())
			if diff := cmp.Diff(test.want, outcomeOf(d)); diff != "" {
				t.Errorf("%s\n%s", diff, render(d))
			}
		})
	}
}

// outcomeOf names the decision of a removal.
func outcomeOf(d cluster.Decision) string {
	if len(d.Refusals) > 0 {
		return "refused"
	}

	for _, op := range d.Steps {
		switch s := op.(type) {
		case step.LeaveEtcd:
			return "leaves"
		case step.Reset:
			if s.Last {
				return "ends"
			}

			return "resets"
		}
	}

	if len(d.Holds) > 0 && strings.Contains(d.Holds[0].Reason, "stays in etcd until") && d.Yields {
		return "waits"
	}

	return "else"
}
