package secrets_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// turnedHCL is secrets whose authorities are rotated once.
const turnedHCL = `
resource "talosop_secrets" "this" {
  deletion_protection = false
  rotate              = { talos_ca = "2026", kubernetes_ca = "2026" }
}
`

// texts are known strings in order.
func texts(lines ...string) knownvalue.Check {
	var checks []knownvalue.Check
	for _, line := range lines {
		checks = append(checks, knownvalue.StringExact(line))
	}

	return knownvalue.ListExact(checks)
}

// A whole cluster rotates its authorities in three applies, whose plans list every step, and without a reboot. After
// that the former credentials are refused.
func TestAccRotation_ofAWholeCluster(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 1)
		machines := s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, ""), "")
		accept, use, drop := "accept new Talos CA, accept new Kubernetes CA", "use new Talos CA, use new Kubernetes CA",
			"drop former Talos CA, drop former Kubernetes CA"

		operations := func(lines ...string) []plancheck.PlanCheck {
			return []plancheck.PlanCheck{plancheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("operations"),
				texts(lines...))}
		}

		of := func(name, what string) string { return "apply configuration to " + name + " (no reboot): " + what }

		move := func(what, ofWorkers string) resource.TestStep {
			return resource.TestStep{
				Config: turnedHCL + machines,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: operations(
					of("cp-1", what), of("cp-2", what), of("cp-3", what), of("batch/w-1", ofWorkers),
				)},
				ExpectNonEmptyPlan: true,
			}
		}

		last := move(drop, "drop former Talos CA")
		last.ExpectNonEmptyPlan = false
		last.ConfigPlanChecks.PostApplyPostRefresh = []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
		last.ConfigStateChecks = []statecheck.StateCheck{
			statecheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("phase"), knownvalue.StringExact("Ready")),
		}

		var former *pki.Bundle

		last.Check = func(*terraform.State) error {
			sitetest.ExpectRefused(t, s, former)

			if calls := s.CallsTo("Reboot"); len(calls) > 0 {
				t.Errorf("machines rebooted: %v", calls)
			}

			return nil
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: sitetest.SecretsHCL + machines,
					Check: func(state *terraform.State) (err error) {
						made := state.RootModule().Resources["talosop_secrets.this"].Primary.Attributes["bundle"]
						former, err = pki.Parse([]byte(made))
						s.ForgetCalls()

						return err
					},
				},
				move(accept, accept), move(use, use), last,
			},
		})
	})
}

// Resources that depend on each other need no further apply.
func TestAccRotation_ofSplitResources(t *testing.T) {
	testenv.BeforeRelease(t, "TestRotation_goesOnWhereverAnApplyEnds", "TestAccRotation_ofAWholeCluster")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		machines := s.ControlPlaneHCL("") + s.WorkersHCL("")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: sitetest.SecretsHCL + machines},
				{Config: turnedHCL + machines, ExpectNonEmptyPlan: true},
				{Config: turnedHCL + machines, ExpectNonEmptyPlan: true},
				{
					Config: turnedHCL + machines,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
				},
			},
		})
	})
}

// turnedFile is a file of secrets as the guide makes it from the previous one: with the authorities of a fresh file,
// and the previous ones below previous.
func turnedFile(t *testing.T, before, fresh string) map[string]any {
	t.Helper()

	file, other := map[string]any{}, map[string]any{}
	tftest.Must(t, yaml.Unmarshal([]byte(before), &file))
	tftest.Must(t, yaml.Unmarshal([]byte(fresh), &other))

	certs, _ := file["certs"].(map[string]any)
	others, _ := other["certs"].(map[string]any)
	file["previous"] = map[string]any{"certs": map[string]any{"os": certs["os"], "k8s": certs["k8s"]}}
	certs["os"], certs["k8s"] = others["os"], others["k8s"]
	file["rotated"] = []any{"talos_ca", "kubernetes_ca"}

	return file
}

// Secrets that are in no state are rotated where they are kept, with two applies. A file that lacks what machines
// use is refused.
func TestAccRotation_ofProvidedSecrets(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccRotation_ofAWholeCluster", "TestAccProvidedSecrets_areNowhere")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		bundle, fresh := tftest.Bundle(), otherBundle(t)
		s := sitetest.New(t, 1, 1)
		w := providedSite(t, s, cli, bundle)
		w.MustRun("apply", "-auto-approve")
		s.ForgetCalls()

		give := func(change func(file map[string]any)) {
			file := turnedFile(t, bundle, fresh)
			change(file)

			text, err := yaml.Marshal(file)
			tftest.Must(t, err)
			w.Setenv("TF_VAR_secrets", string(text))
		}

		dropped := func(file map[string]any) { delete(file, "previous") }
		give(dropped)
		planned := sitetest.Fails(t, w, "plan")
		sitetest.Shows(t, planned, "keys_missing")
		sitetest.Says(t, planned, "p-1 uses a Talos CA")
		sitetest.Shows(t, sitetest.Fails(t, w, "plan", "-refresh=false"), "keys_missing")
		s.ExpectNothingSent(t)

		give(func(map[string]any) {})

		settles := func(moves ...string) {
			var output string

			for range 3 {
				if empty, _ := w.PlanIsEmpty(); empty {
					break
				}

				output += w.MustRun("apply", "-auto-approve").Output()
			}

			sitetest.Says(t, w.MustRun("plan"), "No changes.")

			for _, machine := range []string{"cp-1", "w-1"} {
				for _, move := range moves {
					if line := "apply configuration to " + machine + " (no reboot): " + move; !strings.Contains(output, line) {
						t.Errorf("no plan says %s:\n%s", line, output)
					}
				}
			}
		}
		settles("accept new Talos CA, accept new Kubernetes CA", "use new Talos CA, use new Kubernetes CA")
		give(func(file map[string]any) { delete(file, "previous"); delete(file, "rotated") })
		sitetest.Shows(t, sitetest.Fails(t, w, "plan"), "secrets_of_another_cluster")

		give(dropped)
		settles("drop former Talos CA")

		former, err := pki.Parse([]byte(bundle))
		tftest.Must(t, err)
		sitetest.ExpectRefused(t, s, former)

		for _, secrets := range []string{bundle, fresh} {
			sitetest.HoldsNone(t, secrets, map[string]string{"state": w.Read("terraform.tfstate*")})
		}

		w.MustRun("destroy", "-auto-approve")
		s.ExpectBlank(t)
	})
}
