package restore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

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
	production.Ready(t, sitetest.OnMachines(s, s.URL, planes, s.Workers[:1]))

	from := sitetest.BackedUp(t, production, t.TempDir())
	before := parts(t, s, tftest.Bundle(), s.URL, planes[0])

	s.ForgetCalls()

	twin := tftest.With(sitetest.OnMachines(s, s.URL, spares, s.Workers[1:]), from, "restore_from")

	refused := clusterOn().Apply(t, twin)
	if diagnostics := tftest.Show(refused.Diagnostics); !refused.Failed() || !strings.Contains(diagnostics, "set isolated = true") {
		t.Errorf("a second state was not refused: %s", diagnostics)
	}

	if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 {
		t.Errorf("machines were configured: %v", sent)
	}

	endpoint, err := s.Endpoint()
	tftest.Must(t, err)

	isolated := tftest.With(tftest.With(sitetest.OnMachines(s, endpoint, spares, s.Workers[1:]), from, "restore_from"), true,
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
