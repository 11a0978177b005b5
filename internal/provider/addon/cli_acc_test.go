package addon_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

const (
	addonAddress       = "talosop_addon.this"
	addonWritten       = "only-written-never-read"
	addonSensitive     = "sensitive-but-in-state"
	addonRegistryWords = "the-word-of-the-repository"
)

// addonHCL is an addon with every secret.
func addonHCL(endpoint, repository, namespace string) string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

variable "secret" {
  type      = object({ values = string, repository = string })
  ephemeral = true
}

variable "run" {
  default = "1"
}

variable "message" {
  default = "one"
}

provider "talosop" {
  clusters = { prod = { secrets = file("secrets.yaml") } }
}

resource "talosop_addon" "this" {
  cluster = {
    name               = "prod"
    endpoint           = %q
    kubernetes_version = "v1.36.3"
  }

  name       = "simple"
  namespace  = %q
  chart      = "simple"
  repository = %q
  version    = "1.0.0"
  wait_timeout = "2m"

  values            = ["message: ${var.message}", yamlencode({ replicas = 1 })]
  set_sensitive     = [{ name = "token", value = %q }]
  values_wo         = [yamlencode({ password = var.secret.values })]
  values_wo_version = var.run

  registry = {
    username    = "reader"
    password_wo = var.secret.repository
    ca       = file("repository.pem")
  }

  lifecycle {
    postcondition {
      condition     = self.status == "deployed"
      error_message = "It is not deployed."
    }
  }
}
`, endpoint, namespace, repository, addonSensitive)
}

// An addon is created, changed, repaired and destroyed, and secrets appear only where they have to be.
func TestAccAddon_lifecycle(t *testing.T) {
	t.Parallel()

	cluster := kubetest.Shared(t)
	repository := kubetest.NewRepository(t, kubetest.ServerOptions{Username: "reader", Password: addonRegistryWords})
	repository.Add(t, kubetest.Simple.Package("1.0.0"))

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		namespace := strings.ToLower(cli.Name)

		w := clitest.NewWorkspace(t, cli).KeepTrace()
		w.Write("main.tf", addonHCL(cluster.Endpoint(), repository.URL, namespace))
		w.Write("secrets.yaml", cluster.Secrets(t))
		w.Write("repository.pem", repository.CA)
		w.Setenv("TF_VAR_secret", tftest.JSON(t, map[string]string{"values": addonWritten, "repository": addonRegistryWords}))
		w.Init()

		output := w.MustRun("apply", "-auto-approve").Output()
		sitetest.ExpectNoChanges(t, w, "after the create")

		secret, err := cluster.API().CoreV1().Secrets(namespace).Get(t.Context(), "simple", metav1.GetOptions{})
		if err != nil || string(secret.Data["password"]) != addonWritten {
			t.Errorf("the Secret is not as it was written: %v", err)
		}

		changed := []string{"-var", "run=2", "-var", "message=two"}
		plan := w.MustRun(append([]string{"plan", "-out", "addon.plan"}, changed...)...)
		sitetest.Says(t, plan, namespace+"/simple", "1 object changed")
		sitetest.Says(t, plan, `data.message`)

		output += plan.Output()
		planned := w.MustRun("show", "addon.plan").Output()
		encodedPlan, planFile := w.MustRun("show", "-json", "addon.plan").Output(), w.PlanFile("addon.plan")

		tftest.Must(t, cluster.API().CoreV1().ConfigMaps(namespace).Delete(t.Context(), "simple", metav1.DeleteOptions{}))

		output += w.MustRun("apply", "addon.plan").Output()

		if live, err := cluster.API().CoreV1().ConfigMaps(namespace).Get(t.Context(), "simple",
			metav1.GetOptions{}); err != nil || live.Data["message"] != "two" {
			t.Errorf("the ConfigMap is %v, %v", live, err)
		}

		sitetest.Says(t, w.MustRun(append([]string{"plan"}, changed...)...), "No changes.")

		state := w.Read("terraform.tfstate")

		wrong := w.Run("plan", "-var", `secret={values="x",repository="another-word"}`, "-var", "message=three")
		if wrong.Exit == 0 {
			t.Error("a plan with wrong credentials is fine")
		}

		sitetest.Says(t, wrong, "401 Unauthorized")

		output += wrong.Output() + sitetest.CountedAway(t, w, "addon", changed...).Output()

		for _, hidden := range []string{addonWritten, addonRegistryWords, addonSensitive} {
			places := map[string]string{"output": output, "log": w.Trace(), "plan": planned}
			if hidden != addonSensitive {
				places["state"], places["plan as JSON"], places["plan file"] = state, encodedPlan, planFile
			}

			for where, text := range places {
				if strings.Contains(text, hidden) {
					t.Errorf("the %s of %s holds %s", where, cli.Name, hidden)
				}
			}
		}

		// A log or a plan without the addon would prove nothing.
		if !strings.Contains(w.Trace(), namespace+"/simple") {
			t.Errorf("the log of %s does not tell of the addon", cli.Name)
		}

		for where, text := range map[string]string{"plan as JSON": encodedPlan, "plan file": planFile} {
			if !strings.Contains(text, addonSensitive) {
				t.Errorf("the %s of %s does not hold what is sensitive and not write-only", where, cli.Name)
			}
		}
	})
}
