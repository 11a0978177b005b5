package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
)

// providedMachines is a provider with the secrets of a machine.
const providedMachines = `
variable "meta" {
  ephemeral = true
}

variable "patch" {
  ephemeral = true
}

provider "talosop" {
  clusters = {
    test = {
      machines = {
        w-1 = { meta = { user_2 = var.meta }, config_patches = [var.patch] }
      }
    }
  }
}
`

// Settings of one machine that are only in the provider's configuration are applied to that machine, and repaired
// and changed like those in state. They are in no state, plan, output or log. Plans name the keys of META that
// differ.
func TestAccProvidedMachines(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		const (
			meta, later, patch = "META-THAT-IS-HIDDEN", "META-OF-LATER", "PATCH-THAT-IS-HIDDEN"
			key                = 0x0d
		)

		s := sitetest.New(t, 1, 1)
		worker := s.Workers[0]
		config := func(own string) string {
			return sitetest.ProviderHCL + providedMachines + sitetest.SecretsHCL + s.ControlPlaneHCL("") + strings.Replace(s.WorkersHCL(""),
				`address = "`+worker.Address().String()+`"`, `address = "`+worker.Address().String()+`"`+own, 1)
		}

		w := clitest.NewWorkspace(t, cli).KeepTrace()
		w.Setenv("TF_VAR_meta", meta)
		w.Setenv("TF_VAR_patch", "machine: { env: { TOKEN: "+patch+" } }")
		w.Write("main.tf", config(""))
		w.Init()

		shown, file := w.SavedPlan("create.plan")
		output := shown + file + w.MustRun("apply", "create.plan").Output()
		sitetest.ExpectNoChanges(t, w, "after the create")

		if got := worker.Meta()[key]; got != meta {
			t.Errorf("META of the worker is %q", got)
		}

		if !strings.Contains(string(worker.Config()), patch) || strings.Contains(string(s.ControlPlane[0].Config()), patch) {
			t.Error("the patch is not on the worker alone")
		}

		worker.SetMeta(key, "of another client")

		planned := w.MustRun("plan")
		sitetest.Says(t, planned, "META: differs from `clusters` of the provider: 0x0d", "write META 0x0d of w-1")

		w.Setenv("TF_VAR_meta", later)

		shown, file = w.SavedPlan("change.plan")
		output += planned.Output() + shown + file + w.MustRun("apply", "change.plan").Output()
		sitetest.ExpectNoChanges(t, w, "after the change")

		if got := worker.Meta()[key]; got != later {
			t.Errorf("META of the worker is %q", got)
		}

		w.Write("main.tf", config(`, meta = { user_2 = "twice" }`))
		sitetest.Says(t, sitetest.Fails(t, w, "plan"), "key 0x0d again", "it is in `clusters` of the provider")

		w.Write("main.tf", config(`, meta = { user_1 = "beside" }`))
		output += w.MustRun("apply", "-auto-approve").Output()
		sitetest.ExpectNoChanges(t, w, "after a value beside")

		texts := map[string]string{"output": output, "state": w.Read("terraform.tfstate*"), "log": w.Trace()}
		for where, text := range texts {
			for _, secret := range []string{meta, later, patch} {
				if strings.Contains(text, secret) {
					t.Errorf("%s holds %s", where, secret)
				}
			}
		}
	})
}
