package addon_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// One apply makes a cluster without a pod network and the addon that brings it, and the next plan is empty.
func TestAccAddon_bringsThePodNetwork(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccCreate_withoutCNI", "TestAccAddon_lifecycle")
	t.Parallel()

	s := sitetest.NewWith(t, sim.Options{Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}, 1, 0)
	cluster := kubetest.Attach(t, s.Simulator)

	w := clitest.NewWorkspace(t, clitest.Any(t))
	w.Write("cni-1.0.0.tgz", string(kubetest.CNI.Package("1.0.0")))
	w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL(`
  cni                                = { name = "none" }
  allow_scheduling_on_control_planes = true
`)+`
resource "talosop_addon" "network" {
  cluster   = talosop_control_plane.this.cluster
  name      = "cni"
  namespace = "kube-system"
  chart     = "./cni-1.0.0.tgz"
}
`)
	w.Init()
	sitetest.Says(t, w.MustRun("plan"), "kube-system/cni", "1 object added")
	w.MustRun("apply", "-auto-approve")

	if status := w.Attribute("talosop_addon.network", "status"); status != "deployed" {
		t.Errorf("the addon is %v", status)
	}

	cluster.Await(t)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		nodes, err := cluster.API().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		for _, node := range nodes.Items {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					return nil
				}
			}
		}

		return fmt.Errorf("none of %d nodes is ready", len(nodes.Items))
	}))

	sitetest.ExpectNoChanges(t, w, "after the one apply")

	w.Setenv("KUBECONFIG", cluster.Kubeconfig())
	w.Write("secrets.yaml", cluster.Secrets(t))

	for _, id := range []string{
		"kube-system/cni",
		tftest.JSON(t, map[string]any{
			"secrets": "secrets.yaml", "control_plane": map[string]string{"cp-1": s.ControlPlane[0].Address().String()},
			"namespace": "kube-system", "name": "cni",
			"chart": "./cni-1.0.0.tgz",
		}),
	} {
		w.MustRun("state", "rm", "talosop_addon.network")
		w.MustRun("import", "talosop_addon.network", id)
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the import of "+id)

		if revision := tftest.JSON(t, w.Attribute("talosop_addon.network", "revision")); revision != "1" {
			t.Errorf("an import and an apply that change nothing make revision %s", revision)
		}
	}

	w.MustRun("destroy", "-auto-approve")
}
