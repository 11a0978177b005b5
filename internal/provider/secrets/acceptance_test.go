package secrets_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// No call of the provider loses guarded secrets, and the refusal says how to save them.
func TestAccSecrets_protectedFromEveryWayOut(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+"resource \"talosop_secrets\" \"this\" {}\n")

		bundle := w.Attribute("talosop_secrets.this", "bundle")
		refused := func(args ...string) clitest.Result {
			t.Helper()

			result := w.Run(append(args, "-auto-approve")...)
			sitetest.Shows(t, result, "secrets_protected")

			if got := w.Attribute("talosop_secrets.this", "bundle"); result.Exit != 1 || got != bundle {
				t.Errorf("%v: exit status %d, the bundle changed: %t", args, result.Exit, got != bundle)
			}

			return result
		}

		saved(t, w, cli, refused("destroy"), bundle)
		refused("apply", "-replace=talosop_secrets.this")

		w.MustRun("taint", "talosop_secrets.this")
		refused("apply")
		w.MustRun("untaint", "talosop_secrets.this")

		w.Write("main.tf", sitetest.ProviderHCL+
			"removed {\n  from = talosop_secrets.this\n  lifecycle {\n    destroy = true\n  }\n}\n")
		refused("apply")

		// Protection that is off only in the configuration is still on.
		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL)
		refused("destroy")

		if result := w.MustRun("apply", "-auto-approve"); strings.Contains(result.Output(), "known after apply") {
			t.Errorf("more changes than the protection:\n%s", result.Output())
		}

		destroyed := w.MustRun("destroy", "-auto-approve")
		sitetest.Shows(t, destroyed, "secrets_will_be_lost")

		if sitetest.Shown(t, "secrets_lost").MatchString(destroyed.Output()) {
			t.Errorf("the apply repeats the warning of its plan:\n%s", destroyed.Output())
		}

		if left := w.Resources(); len(left) > 0 {
			t.Errorf("the state holds %v", left)
		}
	})
}

// saved runs the command of a refusal: it writes the bundle into a file and nothing to the screen.
func saved(t *testing.T, w *clitest.Workspace, cli clitest.CLI, refusal clitest.Result, bundle any) {
	t.Helper()

	if _, err := exec.LookPath("jq"); err != nil {
		t.Log("left out: jq is missing")

		return
	}

	command := regexp.MustCompile(`\(umask .*\)`).FindString(refusal.Output())
	command = strings.Replace(command, "terraform", cli.Path, 1)
	run := exec.CommandContext(t.Context(), "sh", "-c", command) //nolint:gosec // the command that the provider recommends
	run.Dir = w.Dir
	// Parallel tests set it for plugin-testing.
	run.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TF_CLI_CONFIG_FILE=") })

	if output, err := run.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%s: %v: %s", command, err, output)
	}

	file, err := os.ReadFile(filepath.Join(w.Dir, "secrets.yaml"))
	if err != nil || strings.TrimSpace(string(file)) != strings.TrimSpace(bundle.(string)) {
		t.Errorf("the file holds another bundle: %v", err)
	}
}

// The plan refuses to generate new secrets for running machines, although the new ones are still unknown.
func TestAccSecrets_notReplacedUnderALivingCluster(t *testing.T) {
	testenv.BeforeRelease(t, "TestPlan_newSecretsOfALivingCluster", "TestAccSecrets_protectedFromEveryWayOut")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
		w.MustRun("apply", "-auto-approve")
		s.ForgetCalls()

		bundle := w.Attribute("talosop_secrets.this", "bundle")
		result := w.Run("apply", "-auto-approve", "-replace=talosop_secrets.this")
		sitetest.Shows(t, result, "secrets_changed")

		if got := w.Attribute("talosop_secrets.this", "bundle"); result.Exit != 1 || got != bundle {
			t.Errorf("exit status %d, the bundle changed: %t", result.Exit, got != bundle)
		}

		s.ExpectNothingSent(t)

		// The solution in the message recreates the cluster.
		w.MustRun("taint", "talosop_control_plane.this")
		w.MustRun("taint", "talosop_worker.this")
		sitetest.Shows(t, w.MustRun("apply", "-auto-approve", "-replace=talosop_secrets.this"), "secrets_lost")

		if empty, output := w.PlanIsEmpty(); !empty || w.Attribute("talosop_secrets.this", "bundle") == bundle {
			t.Errorf("the cluster was not replaced:\n%s", output)
		}
	})
}
