package provider

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// onMachines is a talosop_cluster on some machines.
func (s *site) onMachines(endpoint string, planes, workers []*sim.Machine) configuration {
	machines := func(all []*sim.Machine) configuration {
		out := configuration{}
		for i, m := range all {
			out["m-"+string(rune('1'+i))] = configuration{"address": m.Address().String()}
		}

		return out
	}

	install := configuration{"disk": "/dev/sda"}
	config := baseCluster()
	config["name"], config["endpoint"], config["deletion_protection"] = "test", endpoint, false
	config["control_plane"] = configuration{"install": install, "machines": machines(planes)}
	config["workers"] = configuration{"all": configuration{"install": install, "machines": machines(workers)}}

	return config
}

// backedUp takes a snapshot of a cluster into a folder, and is what restores it.
func backedUp(t *testing.T, d *driven, folder string) configuration {
	t.Helper()

	backup := drive(t, "talosop_etcd_backup", nil)
	backup.Server = d.Server

	taken := backup.apply(t, configuration{"cluster": attributeOf(t, d.state, "cluster"),
		"file": configuration{"path": folder}}).must(t)

	return configuration{"file": configuration{"path": filepath.Join(folder, text(t, taken.Value, "key"))}}
}

// parts are the members and nodes of a cluster.
func (s *site) parts(t *testing.T, bundle, endpoint string, m *sim.Machine) []string {
	t.Helper()

	api := kubernetesAt(t, endpoint, parsedBundle(t, bundle))
	defer api.Close()

	peers, err := s.EtcdPeers(t.Context(), m)
	must(t, err)

	parts := peers

	for _, node := range api.Nodes.Observe(t.Context()).Nodes {
		parts = append(parts, node.Name+" "+strings.Join(node.Addresses, " "))
	}

	return parts
}

// A second state with the secrets, name and endpoint of a cluster restores a snapshot on spare machines: it is refused
// before any of them gets a configuration. An isolated one with an endpoint of its own is restored beside the cluster,
// by the same process, without its nodes. The cluster keeps its members and nodes.
func TestRehearsal_besideTheCluster(t *testing.T) {
	t.Parallel()

	s := newSite(t, 6, 2)
	server := serve(t, newProviderData(), nil)
	clusterOn := func() *driven {
		d := drive(t, "talosop_cluster", nil)
		d.Server = server

		return d
	}

	planes, spares := s.controlPlane[:3], s.controlPlane[3:]
	production := clusterOn()
	production.ready(t, s.onMachines(s.endpoint, planes, s.workers[:1]))

	from := backedUp(t, production, t.TempDir())
	before := s.parts(t, bundleOnce(), s.endpoint, planes[0])

	s.ForgetCalls()

	twin := with(s.onMachines(s.endpoint, spares, s.workers[1:]), from, "restore_from")

	refused := clusterOn().apply(t, twin)
	if said := show(refused.diagnostics); !refused.failed() || !strings.Contains(said, "set isolated = true") {
		t.Errorf("a second state was not refused: %s", said)
	}

	if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 {
		t.Errorf("machines were configured: %v", sent)
	}

	endpoint, err := s.Endpoint()
	must(t, err)

	isolated := with(with(s.onMachines(endpoint, spares, s.workers[1:]), from, "restore_from"), true, "isolated")
	rehearsal := clusterOn()
	rehearsal.ready(t, isolated)
	rehearsal.expectEmpty(t, "after the rehearsal", isolated)

	own := s.parts(t, bundleOnce(), endpoint, spares[0])
	if len(own) != 3+4 || slices.ContainsFunc(own, func(part string) bool { return slices.Contains(before, part) }) {
		t.Errorf("the rehearsal consists of %q, want three members and four nodes of its own", own)
	}

	if diff := cmp.Diff(before, s.parts(t, bundleOnce(), s.endpoint, planes[0])); diff != "" {
		t.Errorf("the cluster changed (-before +after):\n%s", diff)
	}

	// Its isolation is for good.
	joined := rehearsal.plan(t, with(isolated, nil, "isolated"))
	if said := show(joined.diagnostics); !joined.failed() || !strings.Contains(said, "would change from true to false") {
		t.Errorf("the end of the isolation was not refused: %s", said)
	}

	rehearsal.apply(t, nil).must(t)

	if diff := cmp.Diff(before, s.parts(t, bundleOnce(), s.endpoint, planes[0])); diff != "" {
		t.Errorf("the cluster changed with the end of the rehearsal (-before +after):\n%s", diff)
	}
}

// The same in pods of one host, under another name. Pods of the rehearsal connect to each other alone.
func TestRehearsal_inPodsBesideTheCluster(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	bundle := newBundle(t)
	production := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", bundle, 1, 1)
	production.ready(t, config)

	from := backedUp(t, production, t.TempDir())
	before := s.podUIDs(t)

	rehearsal := drive(t, "talosop_cluster", nil)
	rehearsal.Server = production.Server

	isolated := with(with(s.cluster("drill", bundle, 1, 1), from, "restore_from"), true, "isolated")
	rehearsal.ready(t, isolated)
	rehearsal.expectEmpty(t, "after the rehearsal", isolated)

	policies, err := s.API().NetworkingV1().NetworkPolicies(s.namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: workload.LabelCluster + "=drill"})
	must(t, err)

	if n := len(policies.Items); n != 2 {
		t.Errorf("the rehearsal has %d policies, want one for each of its two machines", n)
	}

	for _, policy := range policies.Items {
		if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(policy.Spec.Egress) != 1 ||
			policy.Spec.Egress[0].To[0].PodSelector.MatchLabels[workload.LabelCluster] != "drill" {
			t.Errorf("%s lets pods out: %v", policy.Name, policy.Spec.Egress)
		}
	}

	// The cluster is as it was.
	for name, uid := range before {
		if now := s.podUIDs(t)[name]; now != uid {
			t.Errorf("pod %s was replaced", name)
		}
	}

	production.expectEmpty(t, "beside the rehearsal", config)
	s.destroy(t, rehearsal, "drill")
	production.expectEmpty(t, "after the rehearsal", config)
	s.destroy(t, production, "dev")
}
