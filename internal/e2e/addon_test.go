package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// withAddon adds an addon to the quickstart: the chart in the folder chart of the workspace.
const withAddon = `
variable "addon" {
  type = object({ mode = string, image = string })
}

variable "token" {
  sensitive = true
}

resource "talosop_addon" "this" {
  cluster          = talosop_control_plane.this.cluster
  name             = "e2e"
  namespace        = "e2e-addon"
  chart            = "./chart"
  values           = [yamlencode(var.addon)]
  set_sensitive    = [{ name = "token", value = var.token, type = "string" }]
  create_namespace = true

  # Workers are where the pods run.
  depends_on = [talosop_worker.this]
}
`

const (
	addonNamespace = "e2e-addon"
	addonToken     = "not-to-be-seen-anywhere"
)

// addon: a Helm release of plain objects, and of pods where machines run some, is installed together with its
// cluster. It is changed, repaired after objects were changed and removed by hand, and removed from the cluster,
// which stays.
func (s site) addon(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	w := s.workspace(t, cli).KeepTrace()
	if err := os.CopyFS(filepath.Join(w.Dir, "chart"), os.DirFS("testdata/addon")); err != nil {
		t.Fatal(err)
	}

	w.Setenv("TF_VAR_token", addonToken)
	s.configureAddon(t, w, "first")
	w.Write("addon.tf", withAddon)
	s.applied(t, w, "create with an addon")
	s.hasAddon(t, w, "first")

	api := s.kubernetesAPI(t, w)

	s.configureAddon(t, w, "second")

	_, plan := w.PlanIsEmpty()
	for _, want := range []string{"ConfigMap e2e-addon/e2e-settings", "data.mode", "ConfigMap e2e-addon/e2e-first",
		"ConfigMap e2e-addon/e2e-second"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan of another value does not name %s:\n%s", want, plan)
		}
	}

	s.applied(t, w, "another value")
	s.hasAddon(t, w, "second")

	if _, err := api.CoreV1().ConfigMaps(addonNamespace).Get(t.Context(), "e2e-first", metav1.GetOptions{}); err == nil {
		t.Error("an object that the chart no longer has is still there")
	}

	s.driftsAndReturns(t, w, api)
	s.leaves(t, w, api)
	s.destroy(t, w)
}

// configureAddon sets the values of the addon.
func (s site) configureAddon(t *testing.T, w *clitest.Workspace, mode string) {
	t.Helper()
	w.Setenv("TF_VAR_addon", inJSON(t, map[string]string{"mode": mode, "image": s.image}))
}

// hasAddon checks the release with the command line of Helm, and its pods.
func (s site) hasAddon(t *testing.T, w *clitest.Workspace, mode string) {
	t.Helper()

	var status struct {
		Info   struct{ Status string }
		Config map[string]any
	}

	out := s.helm(t, w, "status", "e2e", "--namespace", addonNamespace, "--output", "json")
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		t.Fatalf("read what helm says: %v\n%s", err, out)
	}

	if status.Info.Status != "deployed" || status.Config["mode"] != mode || status.Config["token"] != addonToken {
		t.Errorf("helm says %s, mode %v; want deployed, %s and the token", status.Info.Status, status.Config["mode"], mode)
	}

	if s.image == "" {
		return
	}

	pods, err := s.kubernetesAPI(t, w).AppsV1().Deployments(addonNamespace).Get(t.Context(), "e2e-pods",
		metav1.GetOptions{})
	if err != nil || pods.Status.ReadyReplicas != 2 {
		t.Errorf("%d pods are ready (%v), want 2", pods.Status.ReadyReplicas, err)
	}
}

// driftsAndReturns changes an object and removes another one behind Helm's back.
func (s site) driftsAndReturns(t *testing.T, w *clitest.Workspace, api *kubernetes.Clientset) {
	t.Helper()

	maps := api.CoreV1().ConfigMaps(addonNamespace)

	settings, err := maps.Get(t.Context(), "e2e-settings", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	settings.Data["mode"] = "by hand"

	_, err = maps.Update(t.Context(), settings, metav1.UpdateOptions{})
	if err := errors.Join(err, maps.Delete(t.Context(), "e2e-second", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}

	_, plan := w.PlanIsEmpty()
	for _, want := range []string{"ConfigMap e2e-addon/e2e-second is missing", "by hand"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan after changes by hand does not say %q:\n%s", want, plan)
		}
	}

	s.applied(t, w, "changes by hand")

	settings, err = maps.Get(t.Context(), "e2e-settings", metav1.GetOptions{})
	if err != nil || settings.Data["mode"] != "second" {
		t.Errorf("mode is %q (%v) again, want second", settings.Data["mode"], err)
	}

	if _, err := maps.Get(t.Context(), "e2e-second", metav1.GetOptions{}); err != nil {
		t.Errorf("the removed object did not come back: %v", err)
	}
}

// leaves removes the addon from the cluster.
func (s site) leaves(t *testing.T, w *clitest.Workspace, api *kubernetes.Clientset) {
	t.Helper()

	if trace := w.Trace(); strings.Contains(trace, addonToken) {
		t.Error("the log holds a sensitive value")
	}

	if err := os.Remove(filepath.Join(w.Dir, "addon.tf")); err != nil {
		t.Fatal(err)
	}

	s.applied(t, w, "an addon that is removed")

	if slices.Contains(w.Resources(), "talosop_addon.this") {
		t.Error("the state still holds the addon")
	}

	eventually(t, s.boot, "no object of the addon", func(ctx context.Context) error {
		maps, err := api.CoreV1().ConfigMaps(addonNamespace).List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=Helm"})
		if err != nil {
			return err
		}

		secrets, err := api.CoreV1().Secrets(addonNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		if n := len(maps.Items) + len(secrets.Items); n > 0 {
			return fmt.Errorf("%d objects are left", n)
		}

		return nil
	})
}

// helm runs the command line of Helm on the cluster and returns what it prints.
func (s site) helm(t *testing.T, w *clitest.Workspace, args ...string) string {
	t.Helper()

	text, err := bundle(t, w).Kubeconfig(pki.KubeconfigInput{
		Cluster: "e2e", Server: s.endpoint, User: "helm", Groups: []string{"system:masters"}, TTL: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}

	home := t.TempDir()

	config := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	command := exec.CommandContext(ctx, clitest.Asset(t, "helm"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+config, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home,
		"HELM_DATA_HOME="+home)

	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}

	return string(out)
}
