package e2e

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// operationsOfSite run one after the other.
const operationsOfSite = `
resource "talosop_rolling_restart" "all" {
  cluster    = talosop_control_plane.this.cluster
  depends_on = [talosop_worker.this]
}

resource "talosop_etcd_defragment" "after" {
  cluster  = talosop_control_plane.this.cluster
  triggers = { restarted = talosop_rolling_restart.all.finished_at }
}

resource "talosop_service_restart" "kubelet" {
  cluster    = talosop_control_plane.this.cluster
  service    = "kubelet"
  depends_on = [talosop_etcd_defragment.after]
}

resource "talosop_bootstrap_manifests_sync" "this" {
  cluster    = talosop_control_plane.this.cluster
  depends_on = [talosop_service_restart.kubelet]
}
`

// operations: all machines of a cluster are restarted, its etcd is defragmented, its kubelets are restarted and its
// bootstrap manifests are applied. Every machine has a new boot, the cluster works, and the plan is empty.
func (s site) operations(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli)
	w.MustRun("apply", "-auto-approve")
	s.isUsable(t, w)

	before := bootIDs(t, w)

	w.Write("operations.tf", operationsOfSite)
	w.MustRun("apply", "-auto-approve")
	plansNothing(t, w, "after the operations")

	w.MustRun("apply", "-refresh-only", "-auto-approve")

	for machine, boot := range bootIDs(t, w) {
		if boot == "" || boot == before[machine] {
			t.Errorf("%s is still in boot %q", machine, boot)
		}
	}

	s.isUsable(t, w)
	s.destroy(t, w)
}
