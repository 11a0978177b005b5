package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// With static_kubeconfigs, or with the environment variable against it, neither plan nor apply runs the command of a
// kubeconfig.
func TestAccStaticKubeconfigs_runNoCommand(t *testing.T) {
	t.Parallel()

	ran := filepath.Join(t.TempDir(), "ran")
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: one, user: me}}]
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch,
  args: [%q]}}}]
`, ran)

	w := clitest.NewWorkspace(t, clitest.Any(t))
	w.Write("simple-1.0.0.tgz", string(kubetest.Simple.Package("1.0.0")))
	w.Write("kubeconfig", kubeconfig)
	w.Write("main.tf", sitetest.ProviderHCL+`
provider "talosop" {
  static_kubeconfigs = true
}

resource "talosop_addon" "this" {
  kubeconfig = { path = "./kubeconfig" }
  name       = "simple"
  namespace  = "early"
  chart      = "./simple-1.0.0.tgz"
}
`)
	w.Init()

	refuses := func() {
		t.Helper()

		for _, command := range [][]string{{"plan"}, {"apply", "-auto-approve"}} {
			result := w.Run(command...)
			sitetest.Says(t, result, "the command of exec, but the provider sets static_kubeconfigs")

			if _, err := os.Stat(ran); err == nil {
				t.Fatalf("%s ran the command:\n%s", command[0], result.Output())
			}
		}
	}
	refuses()

	w.Write("provider_override.tf", `provider "talosop" { static_kubeconfigs = false }`)
	w.Setenv("TALOSOP_STATIC_KUBECONFIGS", "true")
	refuses()
}
