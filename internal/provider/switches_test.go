package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// execKubeconfig is a kubeconfig whose user runs a command, and the file that the command creates.
func execKubeconfig(t *testing.T) (kubeconfig, ran string) {
	t.Helper()

	ran = filepath.Join(t.TempDir(), "ran")

	return `apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: one, user: me}}]
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch,
  args: ["` + ran + `"]}}}]
`, ran
}

// Every spelling of "on" keeps a plan from running the command of a kubeconfig, whatever the provider block says.
func TestStaticKubeconfigs_inTheEnvironment(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "simple-1.0.0.tgz")
	tftest.Must(t, os.WriteFile(archive, kubetest.Simple.Package("1.0.0"), 0o600))

	for value, runs := range map[string]bool{"1": false, "t": false, "TRUE": false, "true": false, "0": true, "false": true} {
		t.Run(value, func(t *testing.T) {
			t.Setenv("TALOSOP_STATIC_KUBECONFIGS", value)

			kubeconfig, ran := execKubeconfig(t)
			addon := tftest.Drive(t, "talosop_addon", tftest.Config{"static_kubeconfigs": false})
			planned := addon.Plan(t, tftest.Config{"kubeconfig": tftest.Config{"content": kubeconfig}, "name": "simple",
				"namespace": "early", "chart": archive})

			_, err := os.Stat(ran)
			if (err == nil) != runs {
				t.Errorf("the plan ran the command: %v, want %v: %s", err == nil, runs, tftest.Show(planned.Diagnostics))
			}

			if refused := strings.Contains(tftest.Show(planned.Diagnostics),
				"the provider sets static_kubeconfigs"); refused == runs {
				t.Errorf("the plan says %s", tftest.Show(planned.Diagnostics))
			}
		})
	}
}

// A value that is neither on nor off is an error before anything is planned.
func TestStaticKubeconfigs_unreadableInTheEnvironment(t *testing.T) {
	for _, value := range []string{"", "yes", "on", "2", "true "} {
		t.Run(value, func(t *testing.T) {
			t.Setenv("TALOSOP_STATIC_KUBECONFIGS", value)

			server, err := providerserver.NewProtocol6WithError(provider.New("test")())()
			tftest.Must(t, err)

			config := tftest.Dynamic(t, tftest.ValueOf(t, tftest.Schemas(t).Provider.ValueType(), tftest.Config{}))

			resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
			tftest.Must(t, err)

			diagnostics := tftest.Show(resp.Diagnostics)
			if len(resp.Diagnostics) != 1 || resp.Diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError ||
				!strings.Contains(diagnostics, "TALOSOP_STATIC_KUBECONFIGS") || !strings.Contains(diagnostics, "true, false, 1 or 0") {
				t.Errorf("it says %s", diagnostics)
			}
		})
	}
}
