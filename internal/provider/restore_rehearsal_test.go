package provider_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// onMachines is a talosop_cluster on some machines.
func onMachines(s *sitetest.Site, endpoint string, planes, workers []*sim.Machine) tftest.Config {
	machines := func(all []*sim.Machine) tftest.Config {
		out := tftest.Config{}
		for i, m := range all {
			out["m-"+string(rune('1'+i))] = tftest.Config{"address": m.Address().String()}
		}

		return out
	}

	install := tftest.Config{"disk": "/dev/sda"}
	config := tftest.BaseCluster()
	config["name"], config["endpoint"], config["deletion_protection"] = "test", endpoint, false
	config["control_plane"] = tftest.Config{"install": install, "machines": machines(planes)}
	config["workers"] = tftest.Config{"all": tftest.Config{"install": install, "machines": machines(workers)}}

	return config
}

// backedUp takes a snapshot of a cluster into a folder, and returns what restores it.
func backedUp(t *testing.T, d *tftest.Driven, folder string) tftest.Config {
	t.Helper()

	backup := tftest.Drive(t, "talosop_etcd_backup", nil)
	backup.Server = d.Server

	taken := backup.Apply(t, tftest.Config{"cluster": tftest.AttributeOf(t, d.State, "cluster"),
		"file": tftest.Config{"path": folder}}).Must(t)

	return tftest.Config{"file": tftest.Config{"path": filepath.Join(folder, tftest.Text(t, taken.Value, "key"))}}
}

// parts are the members and nodes of a cluster.
func parts(t *testing.T, s *sitetest.Site, bundle, endpoint string, m *sim.Machine) []string {
	t.Helper()

	api := sitetest.KubernetesAt(t, endpoint, tftest.ParsedBundle(t, bundle))
	defer api.Close()

	peers, err := s.EtcdPeers(t.Context(), m)
	tftest.Must(t, err)

	parts := peers

	for _, node := range api.Nodes.Observe(t.Context()).Nodes {
		parts = append(parts, node.Name+" "+strings.Join(node.Addresses, " "))
	}

	return parts
}

// A second state with the secrets, name and endpoint of a cluster restores a snapshot on spare machines: it is
// refused before any of them gets a configuration. An isolated one with its own endpoint is restored beside the
// cluster, by the same process, without its nodes. The cluster keeps its members and nodes.
func TestRehearsal_besideTheCluster(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 6, 2)
	server := tftest.ServeWith(t, tftest.NewProviderData(), nil)
	clusterOn := func() *tftest.Driven {
		d := tftest.Drive(t, "talosop_cluster", nil)
		d.Server = server

		return d
	}

	planes, spares := s.ControlPlane[:3], s.ControlPlane[3:]
	production := clusterOn()
	production.Ready(t, onMachines(s, s.URL, planes, s.Workers[:1]))

	from := backedUp(t, production, t.TempDir())
	before := parts(t, s, tftest.Bundle(), s.URL, planes[0])

	s.ForgetCalls()

	twin := tftest.With(onMachines(s, s.URL, spares, s.Workers[1:]), from, "restore_from")

	refused := clusterOn().Apply(t, twin)
	if diagnostics := tftest.Show(refused.Diagnostics); !refused.Failed() || !strings.Contains(diagnostics, "set isolated = true") {
		t.Errorf("a second state was not refused: %s", diagnostics)
	}

	if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 {
		t.Errorf("machines were configured: %v", sent)
	}

	endpoint, err := s.Endpoint()
	tftest.Must(t, err)

	isolated := tftest.With(tftest.With(onMachines(s, endpoint, spares, s.Workers[1:]), from, "restore_from"), true,
		"isolated")
	rehearsal := clusterOn()
	rehearsal.Ready(t, isolated)
	rehearsal.ExpectEmpty(t, "after the rehearsal", isolated)

	own := parts(t, s, tftest.Bundle(), endpoint, spares[0])
	if len(own) != 3+4 || slices.ContainsFunc(own, func(part string) bool { return slices.Contains(before, part) }) {
		t.Errorf("the rehearsal consists of %q, want three members and four nodes of its own", own)
	}

	if diff := cmp.Diff(before, parts(t, s, tftest.Bundle(), s.URL, planes[0])); diff != "" {
		t.Errorf("the cluster changed (-before +after):\n%s", diff)
	}

	// The isolation is permanent.
	joined := rehearsal.Plan(t, tftest.With(isolated, nil, "isolated"))
	if diagnostics := tftest.Show(joined.Diagnostics); !joined.Failed() ||
		!strings.Contains(diagnostics, "would change from true to false") {
		t.Errorf("the end of the isolation was not refused: %s", diagnostics)
	}

	rehearsal.Apply(t, nil).Must(t)

	if diff := cmp.Diff(before, parts(t, s, tftest.Bundle(), s.URL, planes[0])); diff != "" {
		t.Errorf("the cluster changed with the end of the rehearsal (-before +after):\n%s", diff)
	}
}

// The same in pods of one host, under another name. Pods of the rehearsal connect only to each other.
func TestRehearsal_inPodsBesideTheCluster(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	bundle := tftest.NewBundle(t)
	production := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", bundle, 1, 1)
	production.Ready(t, config)

	from := backedUp(t, production, t.TempDir())
	before := s.podUIDs(t)

	rehearsal := tftest.Drive(t, "talosop_cluster", nil)
	rehearsal.Server = production.Server

	isolated := tftest.With(tftest.With(s.cluster("drill", bundle, 1, 1), from, "restore_from"), true, "isolated")
	rehearsal.Ready(t, isolated)
	rehearsal.ExpectEmpty(t, "after the rehearsal", isolated)

	policies, err := s.API().NetworkingV1().NetworkPolicies(s.namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: workload.LabelCluster + "=drill"})
	tftest.Must(t, err)

	if n := len(policies.Items); n != 2 {
		t.Errorf("the rehearsal has %d policies, want one for each of its two machines", n)
	}

	for _, policy := range policies.Items {
		if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(policy.Spec.Egress) != 1 ||
			policy.Spec.Egress[0].To[0].PodSelector.MatchLabels[workload.LabelCluster] != "drill" {
			t.Errorf("%s lets pods out: %v", policy.Name, policy.Spec.Egress)
		}
	}

	// The cluster is unchanged.
	for name, uid := range before {
		if now := s.podUIDs(t)[name]; now != uid {
			t.Errorf("pod %s was replaced", name)
		}
	}

	production.ExpectEmpty(t, "beside the rehearsal", config)
	s.destroy(t, rehearsal, "drill")
	production.ExpectEmpty(t, "after the rehearsal", config)
	s.destroy(t, production, "dev")
}
