package provider

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

const theCluster = "talosop_cluster.this"

// poolHCL is a pool of workers of talosop_cluster.
func poolHCL(name string, machines []*sim.Machine, extra string) string {
	return fmt.Sprintf(`
    %s = {
      install  = { disk = "/dev/sda" }
      machines = {
%s      }
      %s
    }
`, name, machinesHCL(machines), extra)
}

// clusterHCL is a whole cluster in one resource, which may be destroyed.
func (s *site) clusterHCL(pools, extra string) string {
	return fmt.Sprintf(`
resource "talosop_cluster" "this" {
  mode                = "metal"
  name                = "test"
  endpoint            = %q
  secrets             = talosop_secrets.this.bundle
  talos_version       = "v1.13.0"
  kubernetes_version  = "v1.36.2"
  deletion_protection = false
  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = {
%s    }
  }
  workers = {
%s  }
%s
}
`, s.endpoint, machinesHCL(s.controlPlane), pools, extra)
}

// twoPools is all workers of a site: the first in a pool of its own.
func (s *site) twoPools(extra string) string {
	return poolHCL("batch", s.workers[:1], extra) + poolHCL("gpu", s.workers[1:], `talos_version = "v1.13.0"`)
}

// expectReset checks that no machine of a site is left in a cluster, and that there
// was one etcd.
func (s *site) expectReset(t *testing.T) {
	t.Helper()

	s.expectBlank(t)

	if got := len(s.CallsTo("Bootstrap")); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}
}

// expectBlank checks that every machine was reset.
func (s *site) expectBlank(t *testing.T) {
	t.Helper()

	for _, m := range s.Machines() {
		if m.Configured() || m.Stage() != sim.StageMaintenance {
			t.Errorf("after destroy %s is %s", m.Name(), m.Stage())
		}
	}
}

// One resource makes control plane and workers in one run, plans nothing but to wait for machines that are down, changes
// single pools, and puts all machines back.
func TestAccWholeCluster_lifecycle(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 3)
		config := secretsHCL + s.clusterHCL(s.twoPools(""), "")

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{
					Config: config,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectKnownValue(theCluster, tfjsonpath.New("operations"), knownvalue.ListSizeExact(7)),
							plancheck.ExpectUnknownValue(theCluster, tfjsonpath.New("phase")),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						phaseIs(theCluster, "Ready"),
						statecheck.ExpectKnownValue(theCluster, tfjsonpath.New("observed"), knownvalue.MapSizeExact(6)),
						statecheck.ExpectKnownValue(theCluster, tfjsonpath.New("observed").AtMapKey("cp-2"),
							knownvalue.ObjectPartial(map[string]knownvalue.Check{
								"uuid": knownvalue.StringExact(s.controlPlane[1].UUID()),
							})),
						remembers(theCluster, "cp-2", func(m record.Machine) bool { return m.MemberID != "" }),
						remembers(theCluster, "gpu/w-3", func(m record.Machine) bool { return m.MemberID == "" }),
						statecheck.ExpectKnownValue(theCluster, tfjsonpath.New("observed").AtMapKey("gpu/w-3"),
							knownvalue.ObjectPartial(map[string]knownvalue.Check{
								"uuid": knownvalue.StringExact(s.workers[2].UUID()), "stage": knownvalue.StringExact("running"),
								"node_name": knownvalue.NotNull(),
							})),
						statecheck.ExpectSensitiveValue(theCluster, tfjsonpath.New("cluster").AtMapKey("secrets")),
						statecheck.ExpectKnownValue(theCluster, tfjsonpath.New("cluster").AtMapKey("talos_endpoints"),
							knownvalue.ListSizeExact(3)),
					},
				},
				{
					PreConfig: func() {
						s.controlPlane[2].PowerOff()
						s.workers[1].PowerOff()
					},
					Config:             config,
					PlanOnly:           true,
					ExpectNonEmptyPlan: true,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectKnownValue(theCluster,
							tfjsonpath.New("operations"), knownvalue.ListExact([]knownvalue.Check{
								knownvalue.StringRegexp(regexp.MustCompile("^wait for cp-3"))}))},
					},
				},
				{
					PreConfig: func() {
						s.controlPlane[2].PowerOn()
						s.workers[1].PowerOn()
						s.awaitReady(t)
					},
					Config: secretsHCL + s.clusterHCL(
						s.twoPools(`config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b2" } } })]`), ""),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{plancheck.ExpectKnownValue(theCluster, tfjsonpath.New("operations"),
							knownvalue.ListExact([]knownvalue.Check{
								knownvalue.StringExact(`apply configuration to batch/w-1 (no reboot): + machine.nodeLabels.rack = "b2"`)}))},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
				},
			},
		})

		s.expectReset(t)

		bootstrap := s.CallsTo("Bootstrap")[0].Seq
		for _, w := range s.workers {
			if !slices.ContainsFunc(s.CallsTo("ApplyConfiguration"),
				func(c fault.Call) bool { return c.Machine == w.Name() && c.Seq < bootstrap }) {
				t.Errorf("%s was not configured before etcd was bootstrapped", w.Name())
			}
		}
	})
}

// A pool that is added later joins; an update that stops half way stores the machines
// of it that did join, and the next one goes on.
func TestAccWholeCluster_addsAPool(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccScale_up", "TestAccIncompleteUpdate_keepsWhatJoined")
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 3)
		small := poolHCL("batch", s.workers[:1], "")

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{Config: secretsHCL + s.clusterHCL(small, "")},
				{
					PreConfig: s.workers[2].HangNextReboot,
					Config: secretsHCL + s.clusterHCL(small+poolHCL("gpu", s.workers[1:], ""),
						`timeouts = { update = "`+hanging+`" }`),
					ExpectError: message("Unable to update cluster"),
				},
				{
					PreConfig: func() {
						s.workers[2].PowerOff()
						s.workers[2].PowerOn()
					},
					Config: secretsHCL + s.clusterHCL(small+poolHCL("gpu", s.workers[1:], ""), ""),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						phaseIs(theCluster, "Ready"), statecheck.ExpectKnownValue(theCluster, tfjsonpath.New("observed"),
							knownvalue.MapSizeExact(4)),
					},
				},
			},
		})

		s.expectReset(t)
	})
}

// A pool of workers may be there before its first machine, and after its last one.
func TestAccWorkers_emptyPool(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccScale_up", "TestWholeCluster_planOfUpdates")
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 1)
		plane := secretsProvider + secretsHCL + s.controlPlaneHCL("deletion_protection = false")

		w := applied(t, cli, plane+s.workersOf(nil, ""))
		expectNoChanges(t, w, "with an empty pool")

		w.Write("main.tf", plane+s.workersHCL(""))
		w.MustRun("apply", "-auto-approve")
		expectNoChanges(t, w, "with a worker")

		if name := s.workers[0].Hostname(); name != "w-1" {
			t.Errorf("the worker is called %q", name)
		}

		w.Write("main.tf", plane+s.workersOf(nil, ""))
		says(t, w.MustRun("apply", "-auto-approve"), "reset worker w-1")
		expectNoChanges(t, w, "with an empty pool again")
		w.MustRun("destroy", "-auto-approve")
		s.expectReset(t)
	})
}

// A create that is stopped while a worker hangs is stored with its phase, and goes on
// in the next apply without doing anything twice.
func TestAccWholeCluster_resumesTheCreate(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccIncompleteCreate_resumes", "TestAccIncompleteCreate_namesItsMachine")
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 2)
		s.workers[1].HangNextReboot()

		config := secretsHCL + s.clusterHCL(s.twoPools(""), `
  timeouts = { create = "`+hanging+`" }
  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}."
    }
  }`)

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{Config: config, ExpectError: regexp.MustCompile(`The\s+cluster\s+is\s+(Provisioning|Bootstrapping|Joining)`)},
				{
					PreConfig: func() {
						s.workers[1].PowerOff()
						s.workers[1].PowerOn()
					},
					Config: config,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction(theCluster, plancheck.ResourceActionUpdate),
							plancheck.ExpectUnknownValue(theCluster, tfjsonpath.New("phase")),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{phaseIs(theCluster, "Ready")},
				},
			},
		})

		s.expectReset(t)
	})
}

// A cluster whose state was lost is imported, workers included, and then there is
// nothing to change.
func TestAccWholeCluster_planAfterImportIsEmpty(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 2)
		w := applied(t, cli, secretsProvider+secretsHCL+s.clusterHCL(s.twoPools(""), ""))

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		w.Write("secrets.yaml", bundle)

		s.importsUnchanged(t, w)
		w.MustRun("destroy", "-auto-approve")
	})
}

// importsUnchanged forgets a cluster with two pools and its secrets, imports both, these from secrets.yaml, and finds
// nothing to change.
func (s *site) importsUnchanged(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	for _, address := range []string{theCluster, "talosop_secrets.this"} {
		w.MustRun("state", "rm", address)
	}

	w.MustRun("import", "talosop_secrets.this", "secrets.yaml")
	w.MustRun("import", theCluster, encoded(t, map[string]any{
		"secrets": "secrets.yaml", "control_plane": addresses(s.controlPlane),
		"workers": map[string]any{"batch": addresses(s.workers[:1]), "gpu": addresses(s.workers[1:])},
	}))

	s.ForgetCalls()
	w.MustRun("apply", "-auto-approve")
	s.nothingWasSent(t)

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Errorf("the plan after import is not empty:\n%s", output)
	}
}
