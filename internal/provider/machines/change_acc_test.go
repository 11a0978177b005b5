package machines_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubectl"
)

// Changes of living clusters, under the CLIs and on simulated machines.

const settledInTime = `timeouts = { update = "10m" }`

// upgraded is a configuration with another Talos.
func upgraded(config, talos string) string {
	config = strings.ReplaceAll(config, "v1.13.0", talos)

	return strings.ReplaceAll(config, "v1.36.2", "v1.34.1")
}

func emptyAfterwards(before ...plancheck.PlanCheck) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: before,
		PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

// byHand changes the configuration of a machine outside Terraform.
func byHand(t *testing.T, s *sitetest.Site, bundle *pki.Bundle, m *sim.Machine, change func(string) string) {
	t.Helper()

	fleet, err := providerdata.NewProviderData().FleetOf(t.Context(), pki.Changing, machineset.Set{}, bundle)
	if err != nil {
		t.Fatal(err)
	}

	defer fleet.Close()

	config := change(string(m.Config()))
	if err := fleet.Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}}).
		ApplyConfig(t.Context(), []byte(config), step.Member, ""); err != nil {
		t.Fatal(err)
	}
}

// Talos is upgraded by two minor versions on every machine, through a release in between, and then to another
// schematic.
func TestAccTalosUpgrade_twoMinorVersions(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestUpgrade_inSeveralHops", "TestUpgrade_rollsMachineByMachine")

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		const schematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

		s := sitetest.NewWith(t, sim.Options{TalosVersion: "v1.11.6"}, 3, 2)
		config := func(talos, pool string) string {
			return upgraded(sitetest.SecretsHCL+s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, pool),
				"upgrade_via = [\"v1.12.4\"]\n"+settledInTime), talos)
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: config("v1.11.6", "")},
				{
					Config:           config("v1.13.2", `max_unavailable = "50%"`),
					ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs(sitetest.TheCluster, "Ready"),
						statecheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("version_contract"),
							knownvalue.StringExact("v1.11")),
						statecheck.ExpectKnownValue(sitetest.TheCluster,
							tfjsonpath.New("observed_talos_versions").AtMapKey("batch/w-2"),
							knownvalue.StringExact("v1.13.2")),
					},
				},
				{
					Config: config("v1.13.2", fmt.Sprintf("schematic = %q", schematic)),
					ConfigPlanChecks: emptyAfterwards(sitetest.OperationsAre(sitetest.TheCluster,
						`upgrade Talos on batch/w-1 and batch/w-2: schematic ce4c98.* \(drain, wait for volumes, reboot\)`)),
				},
				{Config: config("v1.12.6", fmt.Sprintf("schematic = %q", schematic)),
					ExpectError: sitetest.Message("allow_downgrade = true")},
			},
		})

		for _, m := range s.Machines() {
			if got := m.TalosVersion(); got != "v1.13.2" {
				t.Errorf("%s runs %s", m.Name(), got)
			}
		}

		for _, m := range s.Workers {
			if got := m.Schematic(); got != schematic {
				t.Errorf("%s runs schematic %q", m.Name(), got)
			}
		}
	})
}

// A change that needs a reboot reboots only its machines.
func TestAccReboot_onlyWhereNeeded(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		boots := map[string]int{}
		file := `config_patches = [yamlencode({ machine = { files = [{ path = "/var/a", op = "create", permissions = 420, content = "a" }] } })]`

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{
					PreConfig: func() {
						for _, m := range s.Machines() {
							boots[m.Name()] = m.Boots()
						}
					},
					Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL(file),
					ConfigPlanChecks: emptyAfterwards(sitetest.OperationsAre("talosop_worker.this",
						`apply configuration to w-1 \(drain, wait for volumes, reboot for machine.files\): .*`,
						`apply configuration to w-2 \(drain, wait for volumes, reboot for machine.files\): .*`)),
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs("talosop_worker.this", "Ready")},
				},
			},
		})

		if got := s.ControlPlane[0].Boots(); got > boots["cp-1"]+1 { // the destroy reboots it once
			t.Errorf("the control plane booted %d times more", got-boots["cp-1"])
		}
	})
}

// A cluster shrinks: removed machines leave etcd and wait in maintenance mode, and nothing else is touched.
func TestAccScale_downTouchesNothingElse(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 3)
		small := sitetest.SecretsHCL + s.ControlPlaneOf(s.ControlPlane[:1], "") + s.WorkersOf(s.Workers[:1], "")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{
					Config:           small,
					ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs("talosop_control_plane.this", "Ready"), sitetest.PhaseIs("talosop_worker.this", "Ready"),
						statecheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("observed"), knownvalue.MapSizeExact(1)),
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("observed"), knownvalue.MapSizeExact(1)),
					},
				},
				{
					PreConfig: func() {
						members, err := s.EtcdMembers(t.Context())
						if err != nil || len(members) != 1 {
							t.Errorf("etcd has members %q (%v)", members, err)
						}

						for _, m := range append(s.ControlPlane[1:], s.Workers[1:]...) {
							if m.Configured() || m.Stage() != sim.StageMaintenance {
								t.Errorf("%s is %s", m.Name(), m.Stage())
							}
						}

						s.ForgetCalls()
					},
					Config: small,
				},
				{PreConfig: func() { s.ExpectNothingSent(t) }, Config: small},
			},
		})
	})
}

// A removal that fails stays pending: the machine is in state until it left, and the next apply finishes. A machine
// that left already is not contacted again.
func TestAccScale_downContinuesAfterFailure(t *testing.T) {
	testenv.BeforeRelease(t, "TestChanges_surviveFailures", "TestRemoval_ofADeadControlPlaneGoesThroughASurvivor",
		"TestAccScale_downTouchesNothingElse")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 3)
		small := sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersOf(s.Workers[:1], `timeouts = { update = "`+sitetest.Hanging+`" }`)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: s.WholeCluster()},
				{
					PreConfig: func() {
						s.Workers[2].SetFault(fault.Fault{Method: "Reset", Count: -1, Code: codes.Unavailable, Message: "not now"})
					},
					Config:      small,
					ExpectError: sitetest.Message("Unable to update workers"),
				},
				{
					PreConfig: func() {
						if s.Workers[1].Configured() {
							t.Error("w-2 was not reset, although only w-3 could not be")
						}

						s.Workers[2].ClearFaults()
						s.ForgetCalls()
					},
					Config: small,
					ConfigPlanChecks: emptyAfterwards(sitetest.OperationsAre("talosop_worker.this",
						`reset worker w-3 .*`, `delete node w-3 from Kubernetes`)),
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs("talosop_worker.this", "Ready"),
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("observed"), knownvalue.MapSizeExact(1)),
					},
				},
			},
		})

		for _, call := range s.CallsTo("Reset") {
			if call.Machine == "w-2" {
				t.Error("w-2 was reset a second time")
			}
		}
	})
}

// The hardware of a worker and of a control plane is replaced on purpose: the old machines leave, and the new ones
// take their names.
func TestAccHardware_replacedByTheUser(t *testing.T) {
	testenv.BeforeRelease(t, "TestMembership_replacedHardware", "TestPreflight_ofAnExchange", "TestPlan_scenarios")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 4, 2)
		was := sitetest.SecretsHCL + s.ControlPlaneOf(s.ControlPlane[:3], "") + s.WorkersOf(s.Workers[:1], "")
		exchange := func(config string, old, now *sim.Machine) string {
			before := fmt.Sprintf("%s = { address = %q }", old.Name(), old.Address())
			if !strings.Contains(config, before) {
				t.Fatalf("there is no %s", before)
			}

			return strings.Replace(config, before,
				fmt.Sprintf("%s = { address = %q, uuid = %q }", old.Name(), now.Address(), now.UUID()), 1)
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: was},
				{
					Config:           exchange(exchange(was, s.ControlPlane[2], s.ControlPlane[3]), s.Workers[0], s.Workers[1]),
					ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs("talosop_control_plane.this", "Ready"), sitetest.PhaseIs("talosop_worker.this", "Ready"),
						statecheck.ExpectKnownValue("talosop_control_plane.this",
							tfjsonpath.New("observed").AtMapKey("cp-3").AtMapKey("uuid"),
							knownvalue.StringExact(s.ControlPlane[3].UUID())),
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("observed"), knownvalue.MapSizeExact(1)),
					},
				},
				{
					PreConfig: func() {
						for _, m := range []*sim.Machine{s.ControlPlane[2], s.Workers[0]} {
							if m.Configured() {
								t.Errorf("%s was not reset", m.Name())
							}
						}
					},
					Config: exchange(exchange(was, s.ControlPlane[2], s.ControlPlane[3]), s.Workers[0], s.Workers[1]),
				},
			},
		})
	})
}

// A machine that moved is found at its new address, and keeps its data.
func TestAccAddress_movedMachineIsFound(t *testing.T) {
	testenv.BeforeRelease(t, "TestIdentity_movedMachineKeepsItsPlace", "TestMembership_addressesSeenLast")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		free := s.Workers[1].Address().Next()

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL("")},
				{
					PreConfig: func() {
						if err := s.Workers[1].Move(free); err != nil {
							t.Fatal(err)
						}

						s.Workers[1].PowerOff()
						s.Workers[1].PowerOn()
						s.ForgetCalls()
					},
					Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") +
						strings.Replace(s.WorkersHCL(""), s.Workers[1].Address().String(), free.String(), 1),
					ConfigPlanChecks: emptyAfterwards(sitetest.OperationsAre("talosop_worker.this", `find w-2 at .*`)),
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("observed").AtMapKey("w-2").AtMapKey("address"),
							knownvalue.StringExact(free.String())),
					},
				},
				{
					PreConfig: func() { s.ExpectNothingSent(t) },
					Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") +
						strings.Replace(s.WorkersHCL(""), s.Workers[1].Address().String(), free.String(), 1),
				},
			},
		})
	})
}

// The plan reports changes made by hand, and the next apply repairs them; after a revert by hand the plan is empty.
func TestAccDrift_isRepaired(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
		w.MustRun("apply", "-auto-approve")

		bundle := sitetest.BundleIn(t, w)
		label := func(config string) string {
			return strings.Replace(config, "machine:\n", "machine:\n    nodeLabels:\n        rack: hidden-value\n", 1)
		}
		driftOf := func(machine string) string {
			machines, _ := w.Attribute("talosop_worker.this", "observed").(map[string]any)
			record, _ := machines[machine].(map[string]any)

			return fmt.Sprint(record["drift"])
		}

		original := string(s.Workers[0].Config())
		byHand(t, s, bundle, s.Workers[0], label)

		empty, plan := w.PlanIsEmpty()
		if empty || !strings.Contains(plan, "apply configuration to w-1 (no reboot)") ||
			strings.Contains(plan, "apply configuration to w-2 (") {
			t.Errorf("with a label on w-1 the plan is\n%s", plan)
		}

		w.MustRun("apply", "-refresh-only", "-auto-approve")

		if got := driftOf("w-1"); got != "[configuration: v1alpha1 machine.nodeLabels.rack]" {
			t.Errorf("the drift of w-1 is %s", got)
		}

		if got := driftOf("w-2"); got != "[]" {
			t.Errorf("the drift of w-2 is %s", got)
		}

		byHand(t, s, bundle, s.Workers[0], func(string) string { return original })

		if empty, plan := w.PlanIsEmpty(); !empty {
			t.Errorf("undone by hand, the plan is\n%s", plan)
		}

		byHand(t, s, bundle, s.Workers[0], label)
		w.MustRun("apply", "-auto-approve")

		if got := driftOf("w-1"); got != "[]" || strings.Contains(string(s.Workers[0].Config()), "hidden-value") {
			t.Errorf("after an apply the drift of w-1 is %s", got)
		}

		if empty, plan := w.PlanIsEmpty(); !empty {
			t.Errorf("after an apply the plan is\n%s", plan)
		}

		expectImageDrift(t, s, w, bundle)
		w.MustRun("destroy", "-auto-approve")
	})
}

// expectImageDrift checks that a kubelet image changed by hand is named, and restored.
func expectImageDrift(t *testing.T, s *sitetest.Site, w *clitest.Workspace, bundle *pki.Bundle) {
	t.Helper()

	images, err := machineconfig.Images(s.Workers[0].Config())
	if err != nil {
		t.Fatal(err)
	}

	meant := images[kubenames.Kubelet]
	version, _ := kubenames.ImageVersion(meant)
	other := kubenames.ImageAt(meant, version, version+"-slim")
	byHand(t, s, bundle, s.Workers[0], func(config string) string { return strings.Replace(config, meant, other, 1) })

	empty, plan := w.PlanIsEmpty()
	if empty || !sitetest.Message(fmt.Sprintf("w-1: image of kubelet: %s, expected %s", other, meant)).MatchString(plan) {
		t.Errorf("with another kubelet on w-1 the plan is\n%s", plan)
	}

	w.MustRun("apply", "-auto-approve")

	if images, err = machineconfig.Images(s.Workers[0].Config()); err != nil || images[kubenames.Kubelet] != meant {
		t.Errorf("after an apply w-1 has kubelet %s (%v)", images[kubenames.Kubelet], err)
	}

	if empty, plan := w.PlanIsEmpty(); !empty {
		t.Errorf("with the kubelet put back the plan is\n%s", plan)
	}
}

// A node that another resource cordoned holds a rollout, which names it. An old cordon holds no rollout, nor does
// the mark that kubectl uncordon left; on a machine of the rollout the mark is removed.
func TestAccChanges_besideStaleCordons(t *testing.T) {
	testenv.BeforeRelease(t, "TestRollout_isNotHeldByStaleMarks", "TestRollout_leavesAForeignCordon")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		others := strings.Replace(s.WorkersOf(s.Workers[1:], ""), `"this"`, `"others"`, 1)
		hcl := sitetest.ProviderHCL + sitetest.SecretsHCL + s.WorkersOf(s.Workers[:1], "")
		w := sitetest.Applied(t, cli, hcl+s.ControlPlaneHCL("")+others)

		text, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		bundle, err := pki.Parse([]byte(text))
		tftest.Must(t, err)

		own, other := nodeName(t, w, sitetest.ThePlane, "cp-1"), nodeName(t, w, "talosop_worker.this", "w-1")
		givenUp := nodeName(t, w, "talosop_worker.others", "w-2")
		mark := func(node, since, spec string) {
			kubectl.PatchNode(t, bundle, s.URL, node, fmt.Sprintf(
				`{"metadata":{"annotations":{"talosop.dev/cordoned":"%s workers b"}},"spec":{%s}}`, since, spec))
		}

		mark(own, "2026-01-02T03:04:05Z", "")
		mark(other, "2026-01-02T03:04:05Z", "")
		mark(givenUp, time.Now().UTC().Format(time.RFC3339), `"unschedulable":true`)

		newer := func(extra string) string {
			return hcl + strings.Replace(s.ControlPlaneHCL(extra), "v1.13.0", "v1.13.2", 1) +
				"removed {\n  from = talosop_worker.others\n  lifecycle {\n    destroy = false\n  }\n}\n"
		}

		w.Write("main.tf", newer(`timeouts = { update = "5s" }`))

		held := w.Run("apply", "-auto-approve")
		if held.Exit == 0 {
			t.Fatalf("a node that was just cordoned held no machine:\n%s", held.Output())
		}

		sitetest.Says(t, held, "workers b", "kubectl uncordon "+givenUp)

		mark(givenUp, "2026-01-02T03:04:05Z", "")
		w.Write("main.tf", newer(""))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the rollout")

		if got := s.ControlPlane[0].TalosVersion(); got != "v1.13.2" {
			t.Errorf("the control plane runs Talos %s", got)
		}

		for _, node := range s.Kubernetes(t, text).Nodes.Observe(t.Context()).Nodes {
			if node.Unschedulable != (node.Name == givenUp) || node.Cordoned != (node.Name != own) {
				t.Errorf("node %s: unschedulable %t, marked %t", node.Name, node.Unschedulable, node.Cordoned)
			}
		}
	})
}

// nodeName is the name of a machine's node as observed.
func nodeName(t *testing.T, w *clitest.Workspace, address, machine string) string {
	t.Helper()

	observed, _ := w.Attribute(address, "observed").(map[string]any)
	seen, _ := observed[machine].(map[string]any)

	name, ok := seen["node_name"].(string)
	if !ok {
		t.Fatalf("%s has no node of %s: %v", address, machine, observed)
	}

	return name
}
