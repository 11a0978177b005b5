package provider_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// A stack of Terragrunt: the units are applied in order, have nothing to change afterwards, and are destroyed in
// reverse order.
func TestAccExamples_terragrunt(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_testsOfTheModule", "TestAccExamples_validate")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s, on := metal(t, sim.Options{}, 1, 2)
		terragrunt := clitest.CLI{Name: "terragrunt", Path: clitest.Asset(t, "terragrunt")}
		w := clitest.NewWorkspace(t, terragrunt).Example("../../examples", "terragrunt")

		planes := map[string]any{"cp-1": map[string]string{"address": s.ControlPlane[0].Address().String()}}
		w.Write("site.yaml", tftest.JSON(t, map[string]any{ // JSON is YAML
			"name": "terragrunt", "endpoint": s.URL, "control_planes": planes, "deletion_protection": false,
			"pools": map[string]any{"batch": sitetest.Addresses(s.Workers)},
		}))
		w.Setenv("TG_TF_PATH", cli.Path)
		w.Setenv("TG_NON_INTERACTIVE", "true")
		w.Setenv("TG_NO_COLOR", "true")

		w.MustRun("run", "--all", "apply")

		if plan := w.MustRun("run", "--all", "plan").Output(); strings.Count(plan, "No changes.") != 2 {
			t.Errorf("the second plan is not empty:\n%s", plan)
		}

		for _, unit := range []string{"cluster", "workers"} {
			if w.Read(filepath.Join(unit, "terraform.tfstate")) == "" {
				t.Errorf("the unit %s has no state", unit)
			}
		}

		w.MustRun("run", "--all", "destroy")
		on.gone(t)
	})
}
