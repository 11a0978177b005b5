package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// turnedHCL is secrets whose authorities are turned over once.
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

// A whole cluster turns its authorities over with two applies, the plans of which list every move, and without a reboot.
func TestAccRotation_ofAWholeCluster(t *testing.T) {
	t.Parallel()

	cli := clitest.One(t)
	s := newSite(t, 3, 1)
	machines := s.clusterHCL(poolHCL("batch", s.workers, ""), "")
	accept, use, drop := "accept new Talos CA, accept new Kubernetes CA", "use new Talos CA, use new Kubernetes CA",
		"drop former Talos CA, drop former Kubernetes CA"

	operations := func(lines ...string) []plancheck.PlanCheck {
		return []plancheck.PlanCheck{plancheck.ExpectKnownValue(theCluster, tfjsonpath.New("operations"), texts(lines...))}
	}

	of := func(name, what string) string { return "apply configuration to " + name + " (no reboot): " + what }

	unitTest(t, cli, resource.TestCase{
		ProtoV6ProviderFactories: quickProviders(),
		Steps: []resource.TestStep{
			{Config: secretsHCL + machines},
			{
				Config: turnedHCL + machines,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: operations(
					of("cp-1", accept), of("cp-2", accept), of("cp-3", accept), of("batch/w-1", accept),
					of("cp-1", use), of("cp-2", use), of("cp-3", use), of("batch/w-1", use),
				)},
				ExpectNonEmptyPlan: true,
			},
			{
				Config: turnedHCL + machines,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: operations(of("cp-1", drop), of("cp-2", drop), of("cp-3", drop),
						of("batch/w-1", "drop former Talos CA")),
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(theCluster, tfjsonpath.New("phase"), knownvalue.StringExact("Ready")),
				},
			},
		},
	})

	for _, m := range s.Machines() {
		if calls := s.CallsTo("Reboot"); len(calls) > 0 {
			t.Errorf("%s rebooted: %v", m.Name(), calls)
		}
	}
}

// Resources that follow each other need one apply more: no control plane uses an authority that workers of another
// resource do not accept yet.
func TestAccRotation_ofSplitResources(t *testing.T) {
	t.Parallel()

	cli := clitest.One(t)
	s := newSite(t, 1, 1)
	machines := s.controlPlaneHCL("") + s.workersHCL("")

	unitTest(t, cli, resource.TestCase{
		ProtoV6ProviderFactories: quickProviders(),
		Steps: []resource.TestStep{
			{Config: secretsHCL + machines},
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
}
