package addon_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The next apply continues an install that was killed midway, and an upgrade that was interrupted midway.
func TestAccAddon_continuesAfterAnInterruptedRun(t *testing.T) {
	testenv.BeforeRelease(t, "TestApply_interruptedLeavesNothingRunning", "TestUpgrade_killedAtEveryChange")
	t.Parallel()

	cluster := kubetest.Shared(t)
	w := clitest.NewWorkspace(t, clitest.Any(t))
	w.Write("simple-1.0.0.tgz", string(kubetest.Simple.Package("1.0.0")))

	write := func(message, annotation string) {
		w.Write("main.tf", sitetest.ProviderHCL+fmt.Sprintf(`
provider "talosop" {
  clusters = { early = { kubeconfig = file(%q) } }
}

resource "talosop_addon" "this" {
  kubeconfig = { cluster = "early" }
  name       = "simple"
  namespace  = "early"
  chart      = "./simple-1.0.0.tgz"
  values     = [yamlencode({ message = %q, podAnnotations = { %q = "true" } })]
}
`, cluster.Kubeconfig(), message, annotation))
	}

	write("one", kubetest.NeverReadyAnnotation)
	w.Init()

	killed := w.Start("apply", "-auto-approve")
	awaitStatus(t, cluster, "early", release.PendingInstall)
	killed.KillProvider()
	killed.Wait()

	if resources := w.Resources(); len(resources) > 0 {
		t.Fatalf("a run that was killed has stored %v", resources)
	}

	write("two", "example.org/fine")
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the run that was killed")

	write("three", kubetest.NeverReadyAnnotation)

	interrupted := w.Start("apply", "-auto-approve")
	awaitStatus(t, cluster, "early", release.PendingUpgrade)
	interrupted.Interrupt()

	if ended := interrupted.Wait(); ended.Exit == 0 {
		t.Error("a run that was interrupted is fine")
	}

	// Nothing continues in the background: its record is final.
	awaitStatus(t, cluster, "early", release.Failed)
	write("four", "example.org/fine")
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the run that was interrupted")

	kubeconfig, err := os.ReadFile(cluster.Kubeconfig())
	tftest.Must(t, err)

	if leak := sitetest.Leaked(string(kubeconfig), w.Read("terraform.tfstate*")); leak != "" {
		t.Errorf("state holds %s of the kubeconfig", leak)
	}

	live, err := cluster.API().CoreV1().ConfigMaps("early").Get(t.Context(), "simple", metav1.GetOptions{})
	if err != nil || live.Data["message"] != "four" {
		t.Errorf("the ConfigMap is %v, %v", live, err)
	}

	w.MustRun("destroy", "-auto-approve")
}

// awaitStatus waits until the newest record of a release has a status.
func awaitStatus(t *testing.T, cluster *kubetest.Cluster, namespace, status string) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		records, err := cluster.API().CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
		if err != nil {
			return err
		}

		var all []string
		for _, record := range records.Items {
			all = append(all, record.Labels["status"])
		}

		if len(all) == 0 || all[len(all)-1] != status {
			return fmt.Errorf("the records are %s", strings.Join(all, ", "))
		}

		return nil
	}))
}
