package secrets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// besideProvided are other resources for a cluster whose secrets are only in the provider's configuration.
const besideProvided = `
resource "talosop_etcd_backup" "this" {
  cluster = talosop_control_plane.this.cluster
  file    = { path = "backups" }
}

data "talosop_cluster_health" "this" {
  cluster = talosop_control_plane.this.cluster
}

output "healthy" {
  value = data.talosop_cluster_health.this.healthy
}
`

// providedSite is the workspace of the example whose secrets are in no state.
func providedSite(t *testing.T, s *sitetest.Site, cli clitest.CLI, bundle string) *clitest.Workspace {
	t.Helper()

	w := clitest.NewWorkspace(t, cli).KeepTrace()
	w.CopyFrom("../../../examples/guides/secrets-outside-state")
	w.Write("beside.tf", besideProvided)
	w.Write("site_override.tf", fmt.Sprintf(`
resource "talosop_control_plane" "this" {
  talos_version       = %[1]q
  kubernetes_version  = "v1.36.3"
  deletion_protection = false
}
resource "talosop_worker" "this" {
  talos_version = %[1]q
  timeouts      = { create = %[2]q }
}
`, s.ControlPlane[0].TalosVersion(), sitetest.Hanging))
	w.Write("site.auto.tfvars.json", tftest.JSON(t, map[string]any{
		"endpoint": s.URL, "control_planes": sitetest.Addresses(s.ControlPlane), "workers": sitetest.Addresses(s.Workers),
		"new_cluster": true,
	}))
	tftest.Must(t, os.Mkdir(filepath.Join(w.Dir, "backups"), 0o700))
	w.Setenv("TF_VAR_secrets", bundle)
	w.Init()

	return w
}

// A cluster has its secrets in the provider block. It is created by a run that fails midway and resumes, has an
// empty plan, is changed, repaired, renamed, backed up and destroyed. No state, plan, output or log contains a
// secret.
func TestAccProvidedSecrets_areNowhere(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		bundle := tftest.Bundle()
		s := sitetest.New(t, 1, 2)
		w := providedSite(t, s, cli, bundle)
		s.Workers[1].HangNextReboot()

		shown, file := w.SavedPlan("create.plan")
		texts := map[string]string{"the plan": shown, "its file": file}
		texts["an apply that could not finish"] = w.Run("apply", "create.plan").Output()
		texts["the state of that"] = w.Read("terraform.tfstate")

		s.Workers[1].PowerOff()
		s.Workers[1].PowerOn()

		output := w.MustRun("apply", "-auto-approve").Output()
		if phase := w.Attribute("talosop_worker.this", "phase"); phase != "Ready" {
			t.Fatalf("the phase of the workers is %v", phase)
		}

		if empty, plan := w.PlanIsEmpty(); !empty {
			t.Errorf("the second plan is not empty:\n%s", plan)
		}

		w.Setenv("TF_VAR_patch", sitetest.RegistryPatch)
		w.Write("change_override.tf", `
resource "talosop_control_plane" "this" {
  deletion_protection    = false
  name                   = "prod2"
  cluster_config_patches = ["machine: { sysctls: { net.core.somaxconn: \"65535\" } }"]
}
provider "talosop" {
  clusters = { prod2 = { secrets = var.secrets, config_patches = [var.patch] } }
}
`)
		w.Write("patch.tf", "variable \"patch\" {\n  ephemeral = true\n}\n")

		shown, file = w.SavedPlan("change.plan")
		texts["the plan of a change"], texts["its file, later"] = shown, file

		output += w.MustRun("apply", "change.plan").Output()
		sitetest.Says(t, w.MustRun("plan"), "No changes.")

		w.Setenv("TF_VAR_patch", strings.ReplaceAll(sitetest.RegistryPatch, sitetest.RegistryPassword, sitetest.RegistryPassword+"-2"))

		changed := w.MustRun("apply", "-auto-approve")
		sitetest.Says(t, changed, "apply configuration to w-2")
		sitetest.Says(t, w.MustRun("plan"), "No changes.")

		output += changed.Output()

		for _, m := range s.Machines() {
			if !strings.Contains(string(m.Config()), sitetest.RegistryPassword+"-2") {
				t.Errorf("%s did not get the patch", m.Name())
			}
		}

		texts["state"] = w.Read("terraform.tfstate*")
		texts["private state"] = sitetest.PrivateIn(t, w.Read("terraform.tfstate"))

		if restored := w.Run("plan", "-destroy").Output(); !strings.Contains(restored, "will be destroyed") {
			t.Errorf("the plan of a destroy:\n%s", restored)
		}

		output += w.MustRun("destroy", "-auto-approve").Output()
		texts["output"], texts["log"] = output, w.Trace()
		sitetest.HoldsNone(t, bundle, texts)

		for where, text := range texts {
			if strings.Contains(text, sitetest.RegistryPassword) {
				t.Errorf("%s holds the password of the patch", where)
			}
		}

		s.ExpectBlank(t)
	})
}

// Secrets of another cluster, and missing ones, are refused before any machine is contacted.
func TestAccProvidedSecrets_others(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		bundle := tftest.Bundle()
		s := sitetest.New(t, 1, 1)
		w := providedSite(t, s, cli, bundle)
		w.MustRun("apply", "-auto-approve")
		s.ForgetCalls()

		another := otherBundle(t)

		w.Setenv("TF_VAR_secrets", another)
		sitetest.Shows(t, sitetest.Fails(t, w, "apply", "-auto-approve"), "secrets_of_another_cluster")
		sitetest.Shows(t, sitetest.Fails(t, w, "apply", "-auto-approve", "-refresh=false", "-var", "workers={}"),
			"secrets_of_another_cluster")
		sitetest.Shows(t, sitetest.Fails(t, w, "destroy", "-auto-approve"), "secrets_of_another_cluster")

		w.Setenv("TF_VAR_secrets", "nonsense")
		sitetest.Shows(t, sitetest.Fails(t, w, "plan"), "invalid_secrets")

		w.Setenv("TF_VAR_secrets", bundle)
		w.Write("patch_override.tf", `
provider "talosop" {
  clusters = { prod = { secrets = var.secrets, config_patches = ["machine: { nonsense: hidden }"] } }
}
`)
		sitetest.Says(t, sitetest.Fails(t, w, "plan"), "unknown fields: machine.nonsense", "`clusters` of the provider")
		w.Write("patch_override.tf", "")

		w.Write("none_override.tf", `provider "talosop" { clusters = { staging = { secrets = var.secrets } } }`)
		sitetest.Says(t, sitetest.Fails(t, w, "plan"), `Found no secrets for cluster "prod"`, "staging")
		s.ExpectNothingSent(t)
	})
}

// Secrets move out of the state and back into it without a change of any machine.
func TestAccProvidedSecrets_fromStateAndBack(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		bundle := tftest.Bundle()
		s := sitetest.New(t, 1, 1)
		w := providedSite(t, s, cli, bundle)
		given := `resource "talosop_control_plane" "this" { secrets = file("secrets.yaml") }`
		w.Write("secrets.yaml", bundle)
		w.Write("given_override.tf", given)
		w.MustRun("apply", "-auto-approve")

		if state := w.Read("terraform.tfstate"); !strings.Contains(state, tftest.SecretsIn(bundle)[0]) {
			t.Error("the search would find nothing")
		}

		s.ForgetCalls()
		w.Write("given_override.tf", "")
		w.MustRun("apply", "-auto-approve")
		sitetest.HoldsNone(t, bundle, map[string]string{"state": w.Read("terraform.tfstate")})
		sitetest.Says(t, w.MustRun("plan"), "No changes.")

		w.Write("given_override.tf", given)
		w.MustRun("apply", "-auto-approve")
		sitetest.Says(t, w.MustRun("plan"), "No changes.")
		s.ExpectNothingSent(t)
	})
}

// Secrets that Terraform generates are in state once, when a provider configuration takes them from the resource
// that generates them: in the first plan they are unknown.
func TestAccProvidedSecrets_onceInState(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccProvidedSecrets_areNowhere", "TestAccProvidedSecrets_fromStateAndBack")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		w := providedSite(t, s, cli, "")
		w.Write("secrets_override.tf", `
provider "talosop" {
  clusters = { prod = { secrets = talosop_secrets.this.bundle } }
}
`)
		w.Write("secrets.tf", `
provider "talosop" {
  alias = "secrets"
}

resource "talosop_secrets" "this" {
  provider = talosop.secrets
}
`)
		w.MustRun("apply", "-auto-approve")

		if empty, plan := w.PlanIsEmpty(); !empty {
			t.Errorf("the second plan is not empty:\n%s", plan)
		}

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		most := 0

		for _, secret := range tftest.SecretsIn(bundle) { // some are in forms that no state has
			most = max(most, strings.Count(w.Read("terraform.tfstate"), secret))
		}

		if most != 1 {
			t.Errorf("a secret is %d times in state", most)
		}

		s.ForgetCalls()
		sitetest.Shows(t, sitetest.Fails(t, w, "apply", "-auto-approve", "-replace=talosop_secrets.this"),
			"deletion_protection")
		s.ExpectNothingSent(t)

		w.Write("protection_override.tf", `resource "talosop_secrets" "this" { deletion_protection = false }`)
		w.MustRun("apply", "-auto-approve")
		w.MustRun("destroy", "-auto-approve")

		s.ExpectBlank(t)
	})
}

// A cluster is imported with secrets that state never gets.
func TestAccProvidedSecrets_import(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccProvidedSecrets_areNowhere", "TestAccImport_plansNothing")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		bundle := tftest.Bundle()
		s := sitetest.New(t, 1, 1)
		w := providedSite(t, s, cli, bundle)
		w.MustRun("apply", "-auto-approve")

		key, _ := w.Attribute("talosop_etcd_backup.this", "key").(string)
		for _, address := range []string{"talosop_etcd_backup.this", "talosop_worker.this", "talosop_control_plane.this"} {
			w.MustRun("state", "rm", address)
		}

		s.UnmarkNodes(t, bundle)

		sitetest.Says(t, sitetest.Fails(t, w, "import", "talosop_control_plane.this", `{"cluster": "none", "machines": {"cp-1": "10.0.0.1"}}`),
			"Found no secrets for cluster")
		w.MustRun("import", "talosop_control_plane.this",
			tftest.JSON(t, map[string]any{"cluster": "prod", "machines": sitetest.Addresses(s.ControlPlane)}))
		w.MustRun("import", "talosop_worker.this", tftest.JSON(t, map[string]any{
			"cluster": "prod", "machines": sitetest.Addresses(s.Workers), "control_plane": sitetest.Addresses(s.ControlPlane),
		}))
		w.MustRun("import", "talosop_etcd_backup.this", tftest.JSON(t, map[string]any{
			"cluster": "prod", "control_plane": sitetest.Addresses(s.ControlPlane), "file": map[string]any{"path": "backups"},
			"key": key,
		}))

		s.ForgetCalls()
		w.MustRun("apply", "-auto-approve") // timeouts and protection, which no machine reports
		sitetest.Says(t, w.MustRun("plan"), "No changes.")
		sitetest.HoldsNone(t, bundle, map[string]string{"state": w.Read("terraform.tfstate*")})
		s.ExpectNothingSent(t)
	})
}

// otherBundle is secrets in the format of `talosctl gen secrets`.
func otherBundle(t *testing.T) string {
	t.Helper()

	generated, err := pki.Generate()
	tftest.Must(t, err)

	text, err := generated.YAML()
	tftest.Must(t, err)

	return string(text)
}
