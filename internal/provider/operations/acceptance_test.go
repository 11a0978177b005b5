package operations_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// operatedHCL is a cluster of one control plane and one worker, with operations on it.
func operatedHCL(s *sitetest.Site, operations string) string {
	return sitetest.SecretsHCL + s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, ""), "") + operations
}

// secretsOf are the secrets of the cluster in a state.
func secretsOf(t *testing.T, w *clitest.Workspace) []string {
	t.Helper()

	encoded, err := sitetest.BundleIn(t, w).YAML()
	tftest.Must(t, err)

	return tftest.SecretsIn(string(encoded))
}

// restartHCL is an action, and a resource whose change of input triggers it.
func restartHCL(input string) string {
	return fmt.Sprintf(`
action "talosop_rolling_restart" "all" {
  config {
    cluster = talosop_cluster.this.cluster
  }
}

resource "terraform_data" "window" {
  input = %q

  lifecycle {
    action_trigger {
      events  = [after_update]
      actions = [action.talosop_rolling_restart.all]
    }
  }
}
`, input)
}

// Terraform invokes an action, from its command line and when a resource changes, and shows its progress. Neither
// shows the secrets of the handle.
func TestAccActions_invoked(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 1)
	w := clitest.NewWorkspace(t, clitest.Newest(t))

	w.Write("providers.tf", sitetest.ProviderHCL)
	w.Write("main.tf", operatedHCL(s, restartHCL("a")))
	w.Init()
	w.MustRun("apply", "-auto-approve")

	before := s.Workers[0].Boots()

	output := w.MustRun("apply", "-auto-approve", "-invoke=action.talosop_rolling_restart.all").Stdout
	if got := s.Workers[0].Boots() - before; got != 1 {
		t.Errorf("invoked: it booted %d times\n%s", got, output)
	}

	if line := "finished: reboot batch-" + s.Workers[0].Name() + " (drain, wait for volumes)"; !strings.Contains(output, line) {
		t.Errorf("%q is not reported:\n%s", line, output)
	}

	w.Write("main.tf", operatedHCL(s, restartHCL("b")))

	plan := w.MustRun("plan", "-out=plan").Stdout
	output += plan + w.MustRun("apply", "plan").Stdout

	if got := s.Workers[0].Boots() - before; got != 2 {
		t.Errorf("triggered: it booted %d times\n%s", got, plan)
	}

	for _, secret := range secretsOf(t, w) {
		if strings.Contains(output, secret) {
			t.Errorf("the output has a secret:\n%s", output)
		}
	}

	w.MustRun("destroy", "-auto-approve")
}

// The plan file of a change that triggers an action contains the configuration of the action, with the secrets of
// the handle. The CLI marks them as sensitive, because the resource that exports the handle does.
func TestAccActions_planFileHasTheHandle(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 1)
	w := clitest.NewWorkspace(t, clitest.Newest(t))

	w.Write("providers.tf", sitetest.ProviderHCL)
	w.Write("main.tf", operatedHCL(s, restartHCL("a")))
	w.Init()
	w.MustRun("apply", "-auto-approve")
	w.Write("main.tf", operatedHCL(s, restartHCL("b")))

	shown, _ := w.SavedPlan("triggered.plan")

	var plan struct {
		Invocations []struct {
			Values    map[string]any `json:"config_values"`
			Sensitive any            `json:"config_sensitive"`
		} `json:"action_invocations"`
	}

	tftest.Must(t, json.Unmarshal([]byte(shown), &plan))

	if len(plan.Invocations) != 1 {
		t.Fatalf("the plan invokes %d actions", len(plan.Invocations))
	}

	invoked := plan.Invocations[0]
	token := sitetest.BundleIn(t, w).Secrets().TrustdInfo.Token

	if token == "" || !strings.Contains(tftest.JSON(t, invoked.Values), token) {
		t.Error("the configuration of the action lacks the machine token of the cluster")
	}

	if strings.Contains(tftest.JSON(t, sitetest.Visible(invoked.Values, invoked.Sensitive)), token) {
		t.Error("the machine token is not marked as sensitive")
	}

	w.MustRun("destroy", "-auto-approve")
}
