package restore_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubectl"
)

// folderBackup keeps snapshots in a folder.
const folderBackup = `
resource "talosop_etcd_backup" "this" {
  cluster = talosop_control_plane.this.cluster
  file    = { path = %q }
}
`

// liveCluster is what must stay unchanged in a cluster: members of etcd, nodes, and an object.
type liveCluster struct {
	Parts  []string
	Object *corev1.ConfigMap
}

// rehearsed is a cluster with a snapshot in a folder, and spare machines for a rehearsal.
type rehearsed struct {
	*sitetest.Site

	secrets, snapshot string
	planes, spares    []*sim.Machine
}

// live asks the cluster of the machine at an endpoint.
func (r *rehearsed) live(t *testing.T, endpoint string, m *sim.Machine) liveCluster {
	t.Helper()

	return liveCluster{parts(t, r.Site, r.secrets, endpoint, m), kubectl.ConfigMap(t, tftest.ParsedBundle(t, r.secrets),
		endpoint, "kept")}
}

// write gives the object of a cluster a value.
func (r *rehearsed) write(t *testing.T, endpoint, value string) {
	t.Helper()
	kubectl.ApplyConfigMap(t, tftest.ParsedBundle(t, r.secrets), endpoint, "kept", value)
}

// expectSame checks that the cluster is unchanged.
func (r *rehearsed) expectSame(t *testing.T, before liveCluster, when string) {
	t.Helper()

	if diff := cmp.Diff(before, r.live(t, r.URL, r.planes[0])); diff != "" {
		t.Errorf("%s the cluster is another one (-before +after):\n%s", when, diff)
	}
}

// production is the workspace of the cluster that has the snapshot.
func (r *rehearsed) production(t *testing.T, cli clitest.CLI) *clitest.Workspace {
	t.Helper()

	folder := t.TempDir()
	w := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+r.ControlPlaneOf(r.planes, ""))
	r.secrets, _ = w.Attribute("talosop_secrets.this", "bundle").(string)
	r.write(t, r.URL, "before")

	w.Write("backup.tf", fmt.Sprintf(folderBackup, folder))
	w.MustRun("apply", "-auto-approve")

	key, _ := w.Attribute("talosop_etcd_backup.this", "key").(string)
	r.snapshot = filepath.Join(folder, key)

	return w
}

// restoring is the configuration of a second state, with the secrets and the name of the cluster.
func (r *rehearsed) restoring(endpoint, extra string) string {
	hcl := r.ControlPlaneOf(r.spares, fmt.Sprintf("  restore_from = { file = { path = %q } }\n%s", r.snapshot, extra))

	return sitetest.ProviderHCL + strings.NewReplacer("talosop_secrets.this.bundle", `file("secrets.yaml")`,
		fmt.Sprintf("%q", r.URL), fmt.Sprintf("%q", endpoint)).Replace(hcl)
}

// A second state with the secrets, name and endpoint of a cluster restores its snapshot on spare machines. The apply
// is refused before a machine is configured, and says how to rehearse. Isolated and with its own endpoint it works.
// Neither a write to the rehearsal nor its end changes the cluster.
func TestAccRehearsal_besideTheCluster(t *testing.T) {
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		t.Parallel()

		s := sitetest.New(t, 6, 0)
		r := &rehearsed{Site: s, planes: s.ControlPlane[:3], spares: s.ControlPlane[3:]}
		production := r.production(t, cli)
		before := r.live(t, r.URL, r.planes[0])

		w := clitest.NewWorkspace(t, cli)
		w.Write("secrets.yaml", r.secrets)
		w.Write("main.tf", r.restoring(r.URL, ""))
		w.Init()
		s.ForgetCalls()

		sitetest.Says(t, sitetest.Fails(t, w, "apply", "-auto-approve"), "a cluster with these secrets already runs",
			"To rehearse the restore next to that cluster, set isolated = true and a separate endpoint")
		sitetest.ExpectWaiting(t, r.spares...)

		if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 || len(w.Resources()) > 0 {
			t.Errorf("the refused restore sent %v, and has %v in state", sent, w.Resources())
		}

		r.expectSame(t, before, "after the refusal")

		endpoint, err := s.Endpoint()
		tftest.Must(t, err)

		w.Write("main.tf", r.restoring(endpoint, "  isolated = true\n"))
		w.MustRun("apply", "-auto-approve")

		own := r.live(t, endpoint, r.spares[0])
		if phase := w.Attribute(sitetest.ThePlane, "phase"); phase != "Ready" || len(own.Parts) != 3+3 ||
			!maps.Equal(own.Object.Data, before.Object.Data) {
			t.Errorf("the rehearsal is %v and consists of %q with %v, want three members, three nodes and the object of the "+
				"snapshot", phase, own.Parts, own.Object.Data)
		}

		r.write(t, endpoint, "rehearsed")
		r.expectSame(t, before, "beside the rehearsal")

		for _, m := range r.spares {
			m.PowerOff()
		}

		r.expectSame(t, before, "after the rehearsal")
		sitetest.ExpectNoChanges(t, production, "after the rehearsal")
	})
}
