package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/talossim"
)

// machineAt is the address of a machine in the configuration.
func machineAt(name string) string { return fmt.Sprintf("talosop_machine.this[%q]", name) }

// oneByOneHCL is a resource for each machine, in a cluster that is described by hand:
// the first control plane begins etcd.
func (s *site) oneByOneHCL(machines []*talossim.Machine, extra string) string {
	var endpoints, list strings.Builder

	for _, m := range s.controlPlane {
		fmt.Fprintf(&endpoints, "%q, ", m.Address())
	}

	for _, m := range machines {
		role := "worker"
		if slices.Contains(s.controlPlane, m) {
			role = "controlplane"
		}

		fmt.Fprintf(&list, "    %s = { role = %q, address = %q }\n", m.Name(), role, m.Address())
	}

	return secretsHCL + fmt.Sprintf(`
locals {
  cluster = {
    name               = "test"
    endpoint           = %q
    secrets            = talosop_secrets.this.bundle
    talos_endpoints    = [%s]
    kubernetes_version = "v1.36.2"
    version_contract   = "v1.13"
  }
  machines = {
%s  }
}

resource "talosop_machine" "this" {
  for_each      = local.machines
  cluster       = local.cluster
  name          = each.key
  role          = each.value.role
  address       = each.value.address
  bootstrap     = each.key == %q
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
%s
}
`, s.endpoint, endpoints.String(), list.String(), s.controlPlane[0].Name(), extra)
}

// memberCount checks how many members etcd has, as a step's check.
func (s *site) memberCount(want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		members, err := s.EtcdMembers(context.Background())
		if err != nil {
			return err
		}

		if len(members) != want {
			return fmt.Errorf("etcd has the members %v, want %d", members, want)
		}

		return nil
	}
}

// waits checks that a machine is in maintenance mode, as a step's check.
func waits(m *talossim.Machine) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if m.Configured() || m.Stage() != talossim.StageMaintenance {
			return fmt.Errorf("%s is %s", m.Name(), m.Stage())
		}

		return nil
	}
}

// A cluster of single machines comes up in one apply, is content with what it made, is
// left by a worker and by a control plane in order, and goes at once.
func TestAccMachines(t *testing.T) {
	eachCLI(t, func(t *testing.T) {
		s := newSite(t, 3, 2)
		all := s.Machines()

		resource.UnitTest(t, resource.TestCase{
			ProtoV6ProviderFactories: impatient(),
			Steps: []resource.TestStep{
				{
					Config: s.oneByOneHCL(all, ""),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectKnownValue(machineAt("cp-1"), tfjsonpath.New("operations"), knownvalue.ListSizeExact(2)),
							plancheck.ExpectKnownValue(machineAt("cp-2"), tfjsonpath.New("operations"), knownvalue.ListSizeExact(1)),
							plancheck.ExpectUnknownValue(machineAt("w-1"), tfjsonpath.New("observed")),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						phaseIs(machineAt("cp-1"), "Ready"), phaseIs(machineAt("cp-3"), "Ready"), phaseIs(machineAt("w-2"), "Ready"),
						statecheck.ExpectKnownValue(machineAt("cp-2"), tfjsonpath.New("id"), knownvalue.StringExact("test/cp-2")),
						statecheck.ExpectKnownValue(machineAt("cp-2"), tfjsonpath.New("observed"), knownvalue.ObjectPartial(map[string]knownvalue.Check{
							"uuid": knownvalue.StringExact(s.controlPlane[1].UUID()), "member_id": knownvalue.NotNull(), "node_name": knownvalue.NotNull(),
						})),
					},
					Check: s.memberCount(3),
				},
				{
					PreConfig: s.controlPlane[1].PowerOff,
					Config:    s.oneByOneHCL(all, ""),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
				},
				{
					PreConfig: func() {
						s.controlPlane[1].PowerOn()

						if err := s.controlPlane[1].AwaitReady(t.Context()); err != nil {
							t.Error(err)
						}

						s.ForgetCalls()
					},
					Config: s.oneByOneHCL(all[:4], ""),
					Check:  waits(s.workers[1]),
				},
				{
					Config: s.oneByOneHCL(slices.Concat(all[:2], all[3:4]), ""),
					Check:  resource.ComposeTestCheckFunc(waits(s.controlPlane[2]), s.memberCount(2)),
				},
			},
		})

		for _, m := range all {
			if err := waits(m)(nil); err != nil {
				t.Error("after destroy", err)
			}
		}

		s.leftInOrder(t, s.controlPlane[2])

		if calls := s.CallsTo("Bootstrap"); len(calls) > 0 {
			t.Errorf("etcd was bootstrapped again: %v", calls)
		}
	})
}

// leftInOrder checks that a control plane left etcd before it was reset.
func (s *site) leftInOrder(t *testing.T, m *talossim.Machine) {
	t.Helper()

	first := func(method string) uint64 {
		for _, call := range s.CallsTo(method) {
			if call.Machine == m.Name() {
				return uint64(call.Seq)
			}
		}

		t.Errorf("%s was not asked to %s", m.Name(), method)

		return 0
	}

	if left, reset := first("EtcdLeaveCluster"), first("Reset"); left > reset {
		t.Errorf("%s was reset before it left etcd", m.Name())
	}
}

// A control plane that begins etcd is made anew beside a cluster that lives: it joins.
func TestAccReplacedFounderJoins(t *testing.T) {
	t.Parallel()

	cli := clitest.Any(t)
	s := newSite(t, 3, 0)
	w := clitest.NewWorkspace(t, cli)
	w.Write("main.tf", secretsProvider+s.oneByOneHCL(s.Machines(), ""))
	w.Init()
	w.MustRun("apply", "-auto-approve")

	w.MustRun("apply", "-auto-approve", "-replace="+machineAt("cp-1"))

	if got := len(s.CallsTo("Bootstrap")); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}

	if err := s.memberCount(3)(nil); err != nil {
		t.Error(err)
	}

	s.leftInOrder(t, s.controlPlane[0])
	w.MustRun("destroy", "-auto-approve")
	s.expectReset(t)
}

// Machines whose state was lost are imported, of both roles, and then nothing is sent to
// them.
func TestAccImportedMachinesPlanNothing(t *testing.T) {
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 1)
		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", secretsProvider+s.oneByOneHCL(s.Machines(), ""))
		w.Init()
		w.MustRun("apply", "-auto-approve")

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		w.Write("secrets.yaml", bundle)

		for _, m := range s.Machines() {
			w.MustRun("state", "rm", machineAt(m.Name()))
			w.MustRun("import", machineAt(m.Name()), encoded(t, map[string]any{
				"secrets": "secrets.yaml", "control_plane": addresses(s.controlPlane), "machines": addresses([]*talossim.Machine{m}),
			}))
		}

		s.ForgetCalls()
		w.MustRun("apply", "-auto-approve")
		s.nothingWasSent(t)

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the plan after import is not empty:\n%s", output)
		}

		w.MustRun("destroy", "-auto-approve")
	})
}

// A machine that is dead for good is taken out of the cluster without it, and the user
// is told that its disk still holds secrets.
func TestAccDeadMachineIsTakenOut(t *testing.T) {
	t.Parallel()

	cli := clitest.Any(t)
	s := newSite(t, 3, 1)
	w := clitest.NewWorkspace(t, cli)
	w.Write("main.tf", secretsProvider+s.oneByOneHCL(s.Machines(), ""))
	w.Init()
	w.MustRun("apply", "-auto-approve")

	s.controlPlane[2].PowerOff()
	w.Write("main.tf", secretsProvider+s.oneByOneHCL(slices.Concat(s.controlPlane[:2], s.workers), ""))

	result := w.MustRun("apply", "-auto-approve")
	says(t, result, "Machines were not reset")

	if err := s.memberCount(2)(nil); err != nil {
		t.Error(err)
	}

	w.MustRun("destroy", "-auto-approve")
}
