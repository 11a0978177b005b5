package statuspage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/statuspage"
)

const (
	before, wanted = "v1.13.2", "v1.14.1"
	kubernetes     = "v1.37.0"
	endpoint       = "https://10.0.0.10:6443"
)

// now is the time of the tests.
var now = time.Date(2026, 11, 29, 14, 6, 9, 0, time.UTC)

// site is an observed cluster of three control planes and workers, which a test changes.
type site struct {
	want        cluster.Spec
	have        cluster.Snapshot
	authorities []health.Certificate
	page        statuspage.Observation
}

func newSite(workers int) *site {
	s := &site{
		want: cluster.Spec{Name: "prod", Endpoint: endpoint},
		have: cluster.Snapshot{Time: now, Machines: map[string]step.MachineState{},
			Etcd:       etcdstate.State{Known: true, Views: map[string]etcdstate.View{}},
			Kubernetes: kubestate.State{Reachable: true, Endpoint: kubestate.Endpoint{URL: endpoint, Asked: true}},
		},
		page: statuspage.Observation{Name: "prod", Endpoint: endpoint, Talos: wanted, Kubernetes: kubernetes,
			Pools: map[string][]string{}, Drift: map[string][]string{}, Operations: []string{},
			Backups: []statuspage.Backup{
				{Key: "prod/2026-11-29T02-00-00Z.snapshot.zst", Time: time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)},
				{Key: "prod/2026-11-28T02-00-00Z.snapshot.zst", Time: time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)},
			}},
	}

	for i := 1; i <= 3; i++ {
		name, address, member := fmt.Sprintf("cp-%d", i), fmt.Sprintf("10.0.0.1%d", i), fmt.Sprintf("a%d", i)
		s.want.Machines = append(s.want.Machines, cluster.MachineAt(address, step.ControlPlane, address))
		s.have.Machines[address] = step.MachineState{Access: step.Member, Role: step.ControlPlane,
			Stage: step.StageRunning, Ready: true, NodeName: name, TalosVersion: wanted, MemberID: member,
			Certificate: kubestate.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(23 * time.Hour)}}
		s.have.Etcd.Members = append(s.have.Etcd.Members,
			etcdstate.Member{ID: member, Name: name, PeerURLs: []string{"https://" + address + ":2380"}})
		s.have.Etcd.Views[member] = etcdstate.View{Member: member, Leader: "a2", Members: []string{"a1", "a2", "a3"}}
		s.addNode(name, address, true)
	}

	for i := 1; i <= workers; i++ {
		pool := "general"
		if i > workers*3/5 {
			pool = "storage"
		}

		name := fmt.Sprintf("%s-%d", pool, i)
		s.addNode(name, fmt.Sprintf("10.0.1.%d", i), false)
		s.page.Pools[pool] = append(s.page.Pools[pool], name)
	}

	for _, name := range []string{"Talos CA", "Kubernetes CA", "etcd CA", "aggregator CA"} {
		s.authorities = append(s.authorities, health.Certificate{Name: name,
			Certificate: kubestate.Certificate{NotBefore: now.AddDate(0, -2, 0), NotAfter: now.AddDate(10, -2, 0)}})
	}

	s.have.Kubernetes.Certificates = []kubestate.ServerCertificate{{URL: endpoint,
		Certificate: kubestate.Certificate{NotBefore: now.AddDate(0, -2, 0), NotAfter: now.AddDate(0, 10, 0)}}}

	return s
}

func (s *site) addNode(name, address string, controlPlane bool) {
	s.have.Kubernetes.Nodes = append(s.have.Kubernetes.Nodes, kubestate.Node{Name: name, Addresses: []string{address},
		Ready: true, ReadyReason: "KubeletReady", ReadySince: now.AddDate(0, 0, -9), ControlPlane: controlPlane,
		KubeletVersion: kubernetes, TalosVersion: wanted})
}

// node is the node with a position: three control planes, then the workers.
func (s *site) node(i int) *kubestate.Node { return &s.have.Kubernetes.Nodes[i] }

// degrade turns a control plane off, and leaves machines with one problem of each kind.
func (s *site) degrade() *site {
	s.have.Machines["10.0.0.13"] = step.MachineState{Access: step.Unreachable, Cause: "i/o timeout"}
	delete(s.have.Etcd.Views, "a3")

	s.node(2).Ready, s.node(2).ReadyReason = false, "NodeStatusUnknown"
	s.node(3).Unschedulable = true
	s.node(4).Ready, s.node(4).ReadyReason = false, "KubeletNotReady"
	s.node(6).TalosVersion = before

	s.have.Kubernetes.Certificates[0].Certificate = kubestate.Certificate{NotBefore: now.AddDate(-1, 0, 3),
		NotAfter: now.AddDate(0, 0, 3)}

	s.page.Drift = map[string][]string{"cp-1": {"machine.sysctls: vm.max_map_count is 65530 instead of 262144"}}
	s.page.Operations = []string{"replace the configuration of cp-1 (no reboot)",
		"upgrade Talos on storage-4: " + before + " -> " + wanted + " (drain, reboot)"}
	s.page.Backups[0].Problem = "it has 1024 bytes, and 23068672 were stored"
	s.page.Backups[1].Time = now.AddDate(0, 0, -9)

	return s
}

// upgradeHalf leaves a control plane and three workers on the former Talos.
func (s *site) upgradeHalf() *site {
	for i, n := range s.have.Kubernetes.Nodes {
		if i == 2 || i > 4 {
			s.have.Kubernetes.Nodes[i].TalosVersion = before
			s.page.Operations = append(s.page.Operations,
				fmt.Sprintf("upgrade Talos on %s: %s -> %s (drain, reboot)", n.Name, before, wanted))
		}
	}

	third := s.have.Machines["10.0.0.13"]
	third.TalosVersion = before
	s.have.Machines["10.0.0.13"] = third

	return s
}

func (s *site) observed() statuspage.Page {
	s.page.Health = health.Of(s.want, s.have, health.Expiry{Within: 30 * 24 * time.Hour, Authorities: s.authorities})

	return statuspage.Observed(s.page, now)
}

// applying is a page that an apply writes while it upgrades a cluster.
func applying() statuspage.Page {
	s := newSite(5).upgradeHalf()
	s.page.Operations, s.page.Drift, s.page.Backups = nil, nil, nil

	page := s.observed()
	c := &page.Clusters[0]
	c.Conditions, c.Certificates = nil, nil

	upgrade := func(machine string, state statuspage.StepState, began, elapsed time.Duration) statuspage.Step {
		return statuspage.Step{Machine: machine, State: state, Began: now.Add(-began), Elapsed: elapsed,
			Text: "upgrade Talos on " + machine + ": " + before + " -> " + wanted + " (drain, reboot)"}
	}

	c.Run = &statuspage.Run{Began: now.Add(-11 * time.Minute),
		Resources: []statuspage.Resource{{Name: "cluster prod"}},
		Steps: []statuspage.Step{
			upgrade("cp-1", statuspage.Finished, 10*time.Minute, 94*time.Second),
			upgrade("cp-2", statuspage.Finished, 6*time.Minute, 88*time.Second),
			upgrade("general-1", statuspage.Finished, 6*time.Minute, 73*time.Second),
			upgrade("general-2", statuspage.Finished, 4*time.Minute, 70*time.Second),
			upgrade("cp-3", statuspage.Running, 41*time.Second, 0),
		},
		Waits: []statuspage.Wait{{Machine: "general-3", Reason: "the control plane is upgraded first"},
			{Machine: "storage-4", Reason: "the control plane is upgraded first"},
			{Machine: "storage-5", Reason: "the control plane is upgraded first"}}}
	for _, w := range c.Run.Waits {
		c.Run.Next = append(c.Run.Next, upgrade(w.Machine, "", 0, 0))
	}

	c.Run.Steps[4].Usual, c.Run.Steps[4].Reason = 90*time.Second, "draining node cp-3"

	for i := range c.ControlPlanes {
		if c.ControlPlanes[i].Name == "cp-3" {
			c.ControlPlanes[i].Problems = append(c.ControlPlanes[i].Problems,
				statuspage.Problem{Kind: statuspage.Working, Text: "draining node cp-3"})
		}
	}

	return page
}

// states are the pages of the screenshots.
func states() map[string]statuspage.Page {
	return map[string]statuspage.Page{
		"healthy": newSite(5).observed(), "degraded": newSite(5).degrade().observed(),
		"upgrading": newSite(5).upgradeHalf().observed(), "applying": applying(),
	}
}

func rendered(t *testing.T, page statuspage.Page) string {
	t.Helper()

	html, err := statuspage.HTML(page)
	if err != nil {
		t.Fatal(err)
	}

	return html
}
