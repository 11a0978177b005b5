package provider_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// resourceCount checks how many resources there are in state.
type resourceCount int

func (c resourceCount) CheckState(
	_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse,
) {
	if got := len(req.State.Values.RootModule.Resources); got != int(c) {
		resp.Error = fmt.Errorf("there are %d resources in state, want %d", got, c)
	}
}

// A cluster grows, in both roles, without touching running machines.
func TestAccScale_up(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 3)
		small := sitetest.SecretsHCL + s.ControlPlaneOf(s.ControlPlane[:1], "") + s.WorkersOf(s.Workers[:1], "")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: small},
				{
					Config: s.WholeCluster(),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction("talosop_control_plane.this", plancheck.ResourceActionUpdate),
							plancheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("operations"),
								knownvalue.ListSizeExact(2)),
							plancheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("phase"),
								knownvalue.StringExact("Ready")),
							plancheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("operations"), knownvalue.ListSizeExact(2)),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("observed"), knownvalue.MapSizeExact(3)),
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("observed"), knownvalue.MapSizeExact(3)),
					},
				},
			},
		})

		if got := len(s.CallsTo("Bootstrap")); got != 1 {
			t.Errorf("etcd was bootstrapped %d times", got)
		}
	})
}

// Configuration that needs no reboot is applied to running machines; arguments outside the configuration touch none.
func TestAccUpdate_withoutAReboot(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		labeled := `config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b2" } } })]`

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{
					PreConfig: s.ForgetCalls,
					Config: sitetest.SecretsHCL + s.ControlPlaneHCL("timeouts = { update = \"20m\" }\n on_incomplete = \"error\"") +
						s.WorkersHCL(`on_destroy = "reset"`),
					ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction("talosop_control_plane.this", plancheck.ResourceActionUpdate),
						plancheck.ExpectResourceAction("talosop_worker.this", plancheck.ResourceActionNoop),
						plancheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("operations"),
							knownvalue.ListSizeExact(0)),
					}},
				},
				{
					PreConfig: func() { s.ExpectNothingSent(t) },
					Config:    sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL(labeled),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("operations"),
								knownvalue.ListExact([]knownvalue.Check{
									knownvalue.StringExact(`apply configuration to w-1 (no reboot): + machine.nodeLabels.rack = "b2"`)})),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
				},
			},
		})

		// Into maintenance mode, from its disk, and into maintenance mode again after the destroy.
		if boots := s.Workers[0].Boots(); boots != 3 {
			t.Errorf("the worker booted %d times, want 3", boots)
		}
	})
}

// A create that cannot finish is stored with its phase, the postcondition fails the run without a taint, and the
// next apply resumes.
func TestAccIncompleteCreate_resumes(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		s.ControlPlane[2].HangNextReboot()

		config := sitetest.SecretsHCL + s.ControlPlaneHCL(`
  timeouts = { create = "`+sitetest.Hanging+`" }
  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The control plane is ${self.phase}."
    }
  }`)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: config, ExpectError: regexp.MustCompile(
					`The\s+control\s+plane\s+is\s+(Provisioning|Bootstrapping|Joining)`)},
				{
					PreConfig: func() {
						s.ControlPlane[2].PowerOff()
						s.ControlPlane[2].PowerOn()
					},
					Config: config,
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction("talosop_control_plane.this", plancheck.ResourceActionUpdate),
							plancheck.ExpectUnknownValue("talosop_control_plane.this", tfjsonpath.New("phase")),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs("talosop_control_plane.this", "Ready")},
				},
			},
		})

		if got := len(s.CallsTo("Bootstrap")); got != 1 {
			t.Errorf("etcd was bootstrapped %d times", got)
		}
	})
}

// A machine that accepted its reset and does not come back fails no destroy: the others are reset.
func TestAccDestroy_goesOnWithoutAMachineThatDoesNotComeBack(t *testing.T) {
	testenv.BeforeRelease(t, "TestTeardown_goesOnWithoutAMachineThatDoesNotComeBack")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		m := tftest.QuickProviderData()
		m.Policy.ResetTimeout = 3 * time.Second

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.ProvidersWith(m),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{PreConfig: s.Workers[0].HangNextReboot, Config: s.WholeCluster(), Destroy: true},
			},
		})

		for _, machine := range s.Machines() {
			if reset := len(s.CallsTo("Reset")); reset != 2 || machine.Config() != nil {
				t.Errorf("%s has a configuration after %d resets", machine.Name(), reset)
			}
		}
	})
}

// With on_incomplete = "error" the same create is an error, and the resource is tainted.
func TestAccIncompleteCreate_onIncompleteError(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccIncompleteCreate_resumes", "TestAccIncompleteCreate_namesItsMachine")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		s.Workers[0].HangNextReboot()

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") +
						s.WorkersHCL("on_incomplete = \"error\"\n  timeouts = { create = \""+sitetest.Hanging+"\" }"),
					ExpectError: sitetest.Message("The resource is tainted"),
				},
				{
					PreConfig: func() {
						s.Workers[0].PowerOff()
						s.Workers[0].PowerOn()
					},
					Config: s.WholeCluster(),
					ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction("talosop_worker.this", plancheck.ResourceActionReplace),
					}},
				},
			},
		})
	})
}

// A failure before anything was sent is a plain error, and nothing is stored.
func TestAccCreate_storesNothingBeforeTheFirstEffect(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 0)
		address := s.ControlPlane[0].Address()

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: sitetest.SecretsHCL + sitetest.ReplaceMachines(s.ControlPlaneOf(nil, ""),
						fmt.Sprintf("cp-1 = { address = %q, uuid = \"4c4c4544-0042-3510-8053-b4c04f435931\" }", address)),
					ExpectError: sitetest.Message("responds as another machine"),
				},
				{Config: sitetest.SecretsHCL, ConfigStateChecks: []statecheck.StateCheck{resourceCount(1)}},
			},
		})

		s.ExpectNothingSent(t)
	})
}

// A machine of another cluster is refused, and nothing is sent to any machine.
func TestAccCreate_refusesForeignMachine(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		other := strings.NewReplacer("talosop_secrets.this", "talosop_secrets.other", "\"this\"",
			"\"other\"").Replace(sitetest.SecretsHCL + s.ControlPlaneOf(s.ControlPlane, ""))
		stolen := sitetest.SecretsHCL + s.ControlPlaneOf([]*sim.Machine{s.Workers[0], s.ControlPlane[0]}[:2], "")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: other},
				{
					PreConfig:   s.ForgetCalls,
					Config:      other + stolen,
					ExpectError: sitetest.Message("not a machine of cluster"),
				},
				{PreConfig: func() { s.ExpectNothingSent(t) }, Config: other},
			},
		})
	})
}

// A machine that is down changes nothing in a plan.
func TestAccRefresh_withAMachineDown(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccRefresh_reportsSilentMachines")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{
					PreConfig: func() {
						s.ControlPlane[2].PowerOff()
						s.Workers[1].PowerOff()
					},
					Config: s.WholeCluster(),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply:             []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("talosop_control_plane.this",
							tfjsonpath.New("observed").AtMapKey("cp-3").AtMapKey("stage"),
							knownvalue.StringExact("running")),
						sitetest.PhaseIs("talosop_worker.this", "Ready"),
					},
				},
				{
					PreConfig: func() {
						s.ControlPlane[2].PowerOn()
						s.Workers[1].PowerOn()
					},
					Config: s.WholeCluster(),
				},
			},
		})
	})
}

// Machines are identified by their hardware. A machine that answers in the place of another is refused, and a
// refresh overwrites neither record.
func TestAccAddress_swappedOnesAreRefused(t *testing.T) {
	testenv.BeforeRelease(t, "TestIdentity_refusesOtherHardware", "TestMembership_addressesSeenLast")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		base := sitetest.SecretsHCL + s.ControlPlaneHCL("")
		a, b := s.Workers[0].Address().String(), s.Workers[1].Address().String()
		exchanged := base + strings.NewReplacer(a, b, b, a).Replace(s.WorkersHCL(""))

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{PreConfig: s.ForgetCalls, Config: exchanged, ExpectError: sitetest.Message("responds as another machine")},
				{
					PreConfig: func() { s.ExpectNothingSent(t) },
					Config:    s.WholeCluster(),
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("observed").AtMapKey("w-1").AtMapKey("uuid"),
							knownvalue.StringExact(s.Workers[0].UUID())),
						sitetest.PhaseIs("talosop_worker.this", "Ready"),
					},
				},
			},
		})
	})
}

// A worker that lost its state waits in maintenance mode again: it is shown as Degraded, and the next apply repairs
// it.
func TestAccDrift_wipedWorkerIsRepaired(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{
					PreConfig: func() {
						s.Workers[0].Wipe()
						s.Workers[0].PowerOn()

						if err := s.Workers[0].AwaitStage(t.Context(), sim.StageMaintenance); err != nil {
							t.Fatal(err)
						}
					},
					Config: s.WholeCluster(),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction("talosop_worker.this", plancheck.ResourceActionUpdate),
							plancheck.ExpectResourceAction("talosop_control_plane.this", plancheck.ResourceActionNoop),
							sitetest.OperationsAre("talosop_worker.this", `delete node w-1 from Kubernetes`,
								`apply configuration to w-1: installs .*`),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs("talosop_worker.this", "Ready")},
				},
			},
		})
	})
}

// Protection is disabled in two steps, and until then every plan of a destroy fails. TestAccReplace_option covers
// replacements.
func TestAccDeletionProtection_isLiftedInTwoSteps(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 0)
		protected := sitetest.SecretsHCL + s.ControlPlaneHCL("deletion_protection = true")
		refusal := sitetest.Shown(t, "deletion_protection")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: protected},
				{PreConfig: s.ForgetCalls, Config: protected, Destroy: true, ExpectError: refusal},
				{Config: sitetest.SecretsHCL, ExpectError: refusal},
				{PreConfig: func() { s.ExpectNothingSent(t) }, Config: sitetest.SecretsHCL + s.ControlPlaneHCL("")},
			},
		})
	})
}

// With on_destroy = "preserve" the machines are forgotten and keep running.
func TestAccPreserve_keepsMachinesRunning(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccPreserve_namesWhatKeepsRunning")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL(`on_destroy = "preserve"`)},
				{PreConfig: s.ForgetCalls, Config: sitetest.SecretsHCL + s.ControlPlaneHCL("")},
				{PreConfig: func() { s.ExpectNothingSent(t) }, Config: sitetest.SecretsHCL + s.ControlPlaneHCL("")},
				// The same machine can be added again.
				{Config: s.WholeCluster(), ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs("talosop_worker.this", "Ready")}},
			},
		})

		if got := len(s.Workers[0].Config()); got > 0 {
			t.Error("the worker was not reset by the last destroy")
		}
	})
}

// A dead machine does not block the reset of the others. It is named, and the next destroy finishes.
func TestAccDestroy_withDeadMachine(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 3)
		base := sitetest.SecretsHCL + s.ControlPlaneHCL("")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{PreConfig: s.Workers[1].PowerOff, Config: base, ExpectError: sitetest.Message("w-2")},
				{
					PreConfig: func() {
						for i, configured := range []bool{false, true, false} {
							if got := s.Workers[i].Configured(); got != configured && i != 1 {
								t.Errorf("after the first destroy %s is configured: %v", s.Workers[i].Name(), got)
							}
						}

						s.Workers[1].PowerOn()
					},
					Config: base,
				},
			},
		})
	})
}

// Without a CNI nodes register and stay NotReady, and nothing waits for them.
func TestAccCreate_withoutCNI(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{{
				Config: sitetest.SecretsHCL + s.ControlPlaneHCL("cni = { name = \"none\" }\n  kube_proxy = false") + s.WorkersHCL(""),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					sitetest.PhaseIs("talosop_control_plane.this", "Ready"), sitetest.PhaseIs("talosop_worker.this", "Ready"),
					statecheck.ExpectKnownValue("talosop_worker.this",
						tfjsonpath.New("observed").AtMapKey("w-1").AtMapKey("node_name"), knownvalue.NotNull()),
				},
			}},
		})
	})
}

// A handle written by hand lets workers join a cluster that talosop did not make.
func TestAccHandle_isWrittenByHand(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		byHand := strings.Replace(s.WorkersHCL(""), "talosop_control_plane.this.cluster", fmt.Sprintf(`{
    name               = "test"
    endpoint           = %q
    secrets            = talosop_secrets.this.bundle
    kubernetes_version = "v1.36.2"
    version_contract   = "v1.13"
    talos_endpoints    = [%q]
  }
  depends_on = [talosop_control_plane.this]`, s.URL, s.ControlPlane[0].Address()), 1)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{{
				Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") + byHand,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs("talosop_worker.this", "Ready")},
			}},
		})
	})
}

// Other spellings of an IPv6 address are the same machine: the plan sends nothing to it.
func TestCanonicalHost_comparesByValue(t *testing.T) {
	t.Parallel()

	for a, b := range map[string]string{
		"fd00::11": "fd00:0:0:0::0011", "::ffff:10.0.0.1": "10.0.0.1", "Node-1.Example.org": "node-1.example.org.",
	} {
		gotA, errA := machineset.CanonicalHost(a)
		gotB, errB := machineset.CanonicalHost(b)

		if errA != nil || errB != nil || gotA != gotB {
			t.Errorf("%s and %s are %q (%v) and %q (%v)", a, b, gotA, errA, gotB, errB)
		}
	}

	for _, bad := range []string{"", "10.0.0", "https://10.0.0.1", "10.0.0.1:50000", "[fd00::1]", "a b", "1.2.3.4.5"} {
		if got, err := machineset.CanonicalHost(bad); err == nil {
			t.Errorf("%q is accepted as %q", bad, got)
		}
	}
}
