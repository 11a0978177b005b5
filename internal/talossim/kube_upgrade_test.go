package talossim_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/talossim"
)

// TestTalosctlUpgradesKubernetes lets Talos's own upgrade of Kubernetes judge: it pulls
// images, replaces the components one by one, waits for each as it does on real machines,
// and brings the bootstrap manifests up to date.
func TestTalosctlUpgradesKubernetes(t *testing.T) {
	ctl := newTalosctl(t)
	sim := talossim.ForTest(t, talossim.Options{Log: t.Logf})
	cps, workers := addMachines(t, sim, "cp", 3), addMachines(t, sim, "worker", 1)
	cluster := newTestCluster(t, sim)
	cluster.create(cps, workers)
	ctl.config = cluster.talosconfig(ctl.dir)

	out := ctl.run(at(cps[0], "upgrade-k8s", "--from", "1.35.2", "--to", "1.36.0", "--endpoint", cluster.input.ControlPlaneEndpoint)...)
	if !strings.Contains(out, "successfully updated") {
		t.Errorf("talosctl upgrade-k8s:\n%s", out)
	}

}
