package credentials_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// credentialFilesHCL are both files of the control plane of the configuration.
const credentialFilesHCL = `
variable "due" {
  default = null
}

resource "talosop_kubeconfig_file" "this" {
  cluster      = talosop_control_plane.this.cluster
  path         = "${path.root}/made/kubeconfig"
  renew_before = var.due
}

resource "talosop_talosconfig_file" "this" {
  cluster      = talosop_control_plane.this.cluster
  path         = "${path.root}/made/talosconfig"
  roles        = ["os:reader"]
  renew_before = var.due
}
`

// keptFiles are the contents of the files.
func keptFiles(t *testing.T, w *clitest.Workspace) (kubeconfig, talosconfig string) {
	t.Helper()

	made := filepath.Join(w.Dir, "made")

	return tftest.ReadFile(t, filepath.Join(made, "kubeconfig")), tftest.ReadFile(t, filepath.Join(made, "talosconfig"))
}

// filesWork connects with both files, and checks that their content is nowhere else.
func filesWork(t *testing.T, w *clitest.Workspace, elsewhere ...string) {
	t.Helper()

	kubeconfig, talosconfig := keptFiles(t, w)
	kubeconfigWorks(t, kubeconfig, 1)
	talosconfigWorks(t, talosconfig)

	for _, name := range []string{"kubeconfig", "talosconfig"} {
		if info, err := os.Stat(filepath.Join(w.Dir, "made", name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %s, %v", name, info.Mode(), err)
		}

		if cluster := w.Attribute("talosop_"+name+"_file.this", "cluster"); cluster != nil {
			t.Errorf("state has %v of the cluster", cluster)
		}
	}

	for line := range strings.Lines(kubeconfig + talosconfig) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")

		switch name {
		case "client-key-data", "key", "client-certificate-data", "crt":
			for _, text := range append(elsewhere, w.Read("terraform.tfstate*")) {
				if strings.Contains(text, value) {
					t.Errorf("%s is in a state, a plan or a log", name)
				}
			}
		}
	}
}

// The apply that creates the cluster writes the files. They work with a real API server, and the next applies keep
// them valid until the destroy removes them.
func TestAccCredentialsFile_forAPerson(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestCredentialsFile_isKeptInOrder", "TestCredentialsFile_followsItsArguments", "TestAccCredentials_workAfterTheCreate")

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.NewWith(t, sim.Options{Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}, 1, 0)
		w := clitest.NewWorkspace(t, cli).KeepTrace()
		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL("")+credentialFilesHCL)
		w.Init()
		w.MustRun("apply", "-auto-approve")
		filesWork(t, w, w.Trace())
		sitetest.ExpectNoChanges(t, w, "after the create")

		tftest.Must(t, os.Remove(filepath.Join(w.Dir, "made", "kubeconfig")))
		tftest.Must(t, os.Chmod(filepath.Join(w.Dir, "made", "talosconfig"), 0o644))

		planned := w.MustRun("plan", "-out", "missing.plan")
		sitetest.Says(t, planned, `status = "missing" -> "valid"`, `status = "changed" -> "valid"`, "2 to change")

		shown := w.MustRun("show", "-json", "missing.plan").Output()
		plan := w.PlanFile("missing.plan")
		w.MustRun("apply", "missing.plan")
		filesWork(t, w, w.Trace(), planned.Output(), shown, plan)
		sitetest.ExpectNoChanges(t, w, "after they were gone")

		renewed(t, w)

		w.MustRun("destroy", "-auto-approve")

		if left, err := os.ReadDir(filepath.Join(w.Dir, "made")); err != nil || len(left) > 0 {
			t.Errorf("the destroy leaves %v: %v", left, err)
		}
	})
}

// renewed checks that files are written again once they are due, and not before.
func renewed(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	soon := []string{"-var", "due=23h59m50s"}
	w.MustRun(append([]string{"apply", "-auto-approve"}, soon...)...)

	kubeconfig, talosconfig := keptFiles(t, w)

	err := wait.Until(t.Context(), 500*time.Millisecond, func(context.Context) error {
		if out := w.MustRun(append([]string{"plan"}, soon...)...).Output(); strings.Count(out, `"due" -> "valid"`) != 2 {
			return errors.New("the plan says: " + out)
		}

		return nil
	})
	tftest.Must(t, err)

	w.MustRun(append([]string{"apply", "-auto-approve"}, soon...)...)
	filesWork(t, w)

	if k, o := keptFiles(t, w); k == kubeconfig || o == talosconfig {
		t.Error("a file that was due is as it was")
	}
}

// A file moves, is replaced and is taken over from a lost state; a foreign file blocks only its own path.
func TestAccCredentialsFile_inItsPlace(t *testing.T) {
	testenv.BeforeRelease(t, "TestCredentialsFile_isKeptInOrder", "TestCredentialsFile_losesNoFileOfAPerson")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+`
variable "path" {
  default = "one"
}

resource "talosop_kubeconfig_file" "this" {
  path    = var.path
  cluster = { name = "prod", endpoint = "https://10.0.0.10:6443", secrets = talosop_secrets.this.bundle }
}
`)
		w.Init()
		w.Write("one", "mine")
		sitetest.Says(t, sitetest.Fails(t, w, "plan"), "Invalid path", `Found "one", which contains something other`)
		tftest.Must(t, os.Remove(filepath.Join(w.Dir, "one")))
		w.MustRun("apply", "-auto-approve")

		w.Write("two", "mine")
		sitetest.Says(t, sitetest.Fails(t, w, "plan", "-var", "path=two"), "Invalid path",
			`Found "two", which contains something other`)

		if w.Read("two") != "mine" {
			t.Error("the file of a person is lost")
		}

		sitetest.Says(t, w.MustRun("apply", "-auto-approve", "-var", "path=three"), "1 added, 0 changed, 1 destroyed")

		if w.Read("one") != "" || w.Read("three") == "" {
			t.Error("the file did not move")
		}

		w.MustRun("apply", "-auto-approve", "-var", "path=three", "-replace", "talosop_kubeconfig_file.this")
		w.MustRun("taint", "talosop_kubeconfig_file.this")
		w.MustRun("apply", "-auto-approve", "-var", "path=three")
		w.MustRun("state", "rm", "talosop_kubeconfig_file.this")

		before := w.Read("three")
		w.MustRun("apply", "-auto-approve", "-var", "path=three")

		if w.Read("three") == before {
			t.Error("a file of a lost state was not written again")
		}

		w.MustRun("destroy", "-auto-approve", "-var", "path=three")

		if w.Read("three") != "" || w.Read("two") != "mine" {
			t.Error("the destroy took the wrong file")
		}
	})
}
