package healthchecks_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Under a CLI a failing check stops the rollout with its name, and its token is in no output. A support bundle of
// the cluster, made by the same configuration, has no secrets.
func TestAccHealthChecks_stopARollout(t *testing.T) {
	testenv.BeforeRelease(t, "TestHealthChecks_holdARollout", "TestSupportBundle_withoutSecrets")
	t.Parallel()

	const token = "TOKEN-OF-THE-MONITORING"

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		var healthy atomic.Bool

		health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !healthy.Load() || r.Header.Get("Authorization") != token {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		t.Cleanup(health.Close)

		s := sitetest.New(t, 1, 0)
		machine := s.ControlPlane[0]
		w := clitest.NewWorkspace(t, cli).KeepTrace()

		config := func(env, more string) string {
			return "variable \"token\" {\n  sensitive = true\n}\n" + sitetest.SecretsHCL + s.ControlPlaneHCL(`
  config_patches = ["machine: { env: { CHANGED: `+env+` } }"]
  health_checks = {
    monitoring = { timeout = "300ms", http = { url = "`+health.URL+`", headers = { Authorization = var.token } } }
  }
`) + more
		}

		w.Setenv("TF_VAR_token", token)
		w.Write("providers.tf", sitetest.ProviderHCL)
		w.Write("main.tf", config("one", ""))
		w.Init()
		w.MustRun("apply", "-auto-approve")

		boots := machine.Boots()

		w.Write("main.tf", config("two", `
resource "talosop_support_bundle" "this" {
  cluster = talosop_control_plane.this.cluster
  path    = "support.zip"
}
`))

		stopped := sitetest.Fails(t, w, "apply", "-auto-approve")
		sitetest.Says(t, stopped, "wait for the health check monitoring before a machine goes out of service",
			`health check "monitoring" did not pass within 300ms: the response is 503 Service Unavailable`)

		healthy.Store(true)

		output := stopped.Output() + w.MustRun("apply", "-auto-approve").Output()

		if got := machine.Boots() - boots; got != 1 {
			t.Errorf("it was rebooted %d times", got)
		}

		if empty, shown := w.PlanIsEmpty(); !empty {
			t.Errorf("the plan is not empty:\n%s", shown)
		}

		texts := tftest.FilesIn(t, filepath.Join(w.Dir, "support.zip"))
		texts["output"], texts["log"], texts["what state shows"] = output, w.Trace(), sitetest.VisibleValues(t, w.State())

		if len(texts) < 20 {
			t.Errorf("the bundle has %d files", len(texts)-3)
		}

		bundle, err := sitetest.BundleIn(t, w).YAML()
		tftest.Must(t, err)
		sitetest.HoldsNone(t, string(bundle), texts)

		for where, text := range texts {
			if strings.Contains(text, token) {
				t.Errorf("%s has the token", where)
			}
		}

		w.MustRun("destroy", "-auto-approve")
	})
}
