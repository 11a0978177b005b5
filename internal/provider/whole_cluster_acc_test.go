package provider_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// One resource creates control plane and workers in one run, plans nothing but to wait for machines that are down,
// changes single pools, and resets all machines.
func TestAccWholeCluster_lifecycle(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 3)
		config := sitetest.SecretsHCL + s.ClusterHCL(sitetest.TwoPools(s, ""), "")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: config,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("operations"), knownvalue.ListSizeExact(7)),
							plancheck.ExpectUnknownValue(sitetest.TheCluster, tfjsonpath.New("phase")),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs(sitetest.TheCluster, "Ready"),
						statecheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("observed"), knownvalue.MapSizeExact(6)),
						statecheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("observed").AtMapKey("cp-2"),
							knownvalue.ObjectPartial(map[string]knownvalue.Check{
								"uuid": knownvalue.StringExact(s.ControlPlane[1].UUID()),
							})),
						sitetest.Remembers(sitetest.TheCluster, "cp-2", func(m record.Machine) bool { return m.MemberID != "" }),
						sitetest.Remembers(sitetest.TheCluster, "gpu/w-3", func(m record.Machine) bool { return m.MemberID == "" }),
						statecheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("observed").AtMapKey("gpu/w-3"),
							knownvalue.ObjectPartial(map[string]knownvalue.Check{
								"uuid": knownvalue.StringExact(s.Workers[2].UUID()), "stage": knownvalue.StringExact("running"),
								"node_name": knownvalue.NotNull(),
							})),
						statecheck.ExpectSensitiveValue(sitetest.TheCluster, tfjsonpath.New("cluster").AtMapKey("secrets")),
						statecheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("cluster").AtMapKey("talos_endpoints"),
							knownvalue.ListSizeExact(3)),
					},
				},
				{
					PreConfig: func() {
						s.ControlPlane[2].PowerOff()
						s.Workers[1].PowerOff()
					},
					Config:             config,
					PlanOnly:           true,
					ExpectNonEmptyPlan: true,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectKnownValue(sitetest.TheCluster,
							tfjsonpath.New("operations"), knownvalue.ListExact([]knownvalue.Check{
								knownvalue.StringRegexp(regexp.MustCompile("^wait for cp-3"))}))},
					},
				},
				{
					PreConfig: func() {
						s.ControlPlane[2].PowerOn()
						s.Workers[1].PowerOn()
						s.AwaitReady(t)
					},
					Config: sitetest.SecretsHCL + s.ClusterHCL(
						sitetest.TwoPools(s, `config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b2" } } })]`), ""),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{plancheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("operations"),
							knownvalue.ListExact([]knownvalue.Check{
								knownvalue.StringExact(`apply configuration to batch/w-1 (no reboot): + machine.nodeLabels.rack = "b2"`)}))},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
				},
			},
		})

		s.ExpectReset(t)

		bootstrap := s.CallsTo("Bootstrap")[0].Seq
		for _, w := range s.Workers {
			if !slices.ContainsFunc(s.CallsTo("ApplyConfiguration"),
				func(c fault.Call) bool { return c.Machine == w.Name() && c.Seq < bootstrap }) {
				t.Errorf("%s was not configured before etcd was bootstrapped", w.Name())
			}
		}
	})
}

// A pool that is added later joins; an update that stops midway stores the machines that did join, and the next one
// continues.
func TestAccWholeCluster_addsAPool(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccScale_up", "TestAccIncompleteUpdate_keepsWhatJoined")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 3)
		small := sitetest.PoolHCL("batch", s.Workers[:1], "")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: sitetest.SecretsHCL + s.ClusterHCL(small, "")},
				{
					PreConfig: s.Workers[2].HangNextReboot,
					Config: sitetest.SecretsHCL + s.ClusterHCL(small+sitetest.PoolHCL("gpu", s.Workers[1:], ""),
						`timeouts = { update = "`+sitetest.Hanging+`" }`),
					ExpectError: sitetest.Message("Unable to update cluster"),
				},
				{
					PreConfig: func() {
						s.Workers[2].PowerOff()
						s.Workers[2].PowerOn()
					},
					Config: sitetest.SecretsHCL + s.ClusterHCL(small+sitetest.PoolHCL("gpu", s.Workers[1:], ""), ""),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs(sitetest.TheCluster, "Ready"), statecheck.ExpectKnownValue(sitetest.TheCluster,
							tfjsonpath.New("observed"),
							knownvalue.MapSizeExact(4)),
					},
				},
			},
		})

		s.ExpectReset(t)
	})
}

// A pool of workers may exist before its first machine, and after its last one.
func TestAccWorkers_emptyPool(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccScale_up", "TestWholeCluster_planOfUpdates")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		plane := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("deletion_protection = false")

		w := sitetest.Applied(t, cli, plane+s.WorkersOf(nil, ""))
		sitetest.ExpectNoChanges(t, w, "with an empty pool")

		w.Write("main.tf", plane+s.WorkersHCL(""))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "with a worker")

		if name := s.Workers[0].Hostname(); name != "w-1" {
			t.Errorf("the worker is called %q", name)
		}

		w.Write("main.tf", plane+s.WorkersOf(nil, ""))
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "reset worker w-1")
		sitetest.ExpectNoChanges(t, w, "with an empty pool again")
		w.MustRun("destroy", "-auto-approve")
		s.ExpectReset(t)
	})
}

// A create that is stopped while a worker hangs is stored with its phase, and the next apply continues without
// repeating a step.
func TestAccWholeCluster_resumesTheCreate(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccIncompleteCreate_resumes", "TestAccIncompleteCreate_namesItsMachine")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)
		s.Workers[1].HangNextReboot()

		config := sitetest.SecretsHCL + s.ClusterHCL(sitetest.TwoPools(s, ""), `
  timeouts = { create = "`+sitetest.Hanging+`" }
  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}."
    }
  }`)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: config, ExpectError: regexp.MustCompile(`The\s+cluster\s+is\s+(Provisioning|Bootstrapping|Joining)`)},
				{
					PreConfig: func() {
						s.Workers[1].PowerOff()
						s.Workers[1].PowerOn()
					},
					Config: config,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction(sitetest.TheCluster, plancheck.ResourceActionUpdate),
							plancheck.ExpectUnknownValue(sitetest.TheCluster, tfjsonpath.New("phase")),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs(sitetest.TheCluster, "Ready")},
				},
			},
		})

		s.ExpectReset(t)
	})
}

// A cluster whose state was lost is imported, including its workers, and then the plan is empty.
func TestAccWholeCluster_planAfterImportIsEmpty(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+s.ClusterHCL(sitetest.TwoPools(s, ""), ""))

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		w.Write("secrets.yaml", bundle)

		sitetest.ExpectImportsUnchanged(t, s, w)
		w.MustRun("destroy", "-auto-approve")
	})
}
