package machines_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// machineAt is the address of a machine in the configuration.
func machineAt(name string) string { return fmt.Sprintf("talosop_machine.this[%q]", name) }

// oneByOne applies a configuration with a resource for each machine.
func oneByOne(t *testing.T, s *sitetest.Site, cli clitest.CLI) *clitest.Workspace {
	t.Helper()

	return sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.OneByOneHCL(s, s.Machines()))
}

// A cluster of single machines comes up in one apply and then has an empty plan. A worker and a control plane leave
// in order, and the rest is destroyed at once.
func TestAccMachine_lifecycle(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)
		all := s.Machines()
		w := oneByOne(t, s, cli)

		for _, m := range all {
			seen := sitetest.RememberedBy(t, w, machineAt(m.Name()))[m.Name()]
			isPlane := slices.Contains(s.ControlPlane, m)

			if seen.UUID != m.UUID() || seen.NodeName == "" || (seen.MemberID != "") != isPlane {
				t.Errorf("what was observed of %s is %+v", m.Name(), seen)
			}

			if phase, id := w.Attribute(machineAt(m.Name()), "phase"),
				w.Attribute(machineAt(m.Name()), "id"); phase != "Ready" || id != "test/"+m.Name() {
				t.Errorf("%s has id %v and phase %v", m.Name(), id, phase)
			}
		}

		s.ExpectMembers(t, 3)
		sitetest.ExpectNoChanges(t, w, "after the first apply")

		s.ControlPlane[1].PowerOff()
		expectsOne(t, w, "wait for cp-2")
		s.ControlPlane[1].PowerOn()

		if err := s.ControlPlane[1].AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}

		w.Write("main.tf", sitetest.ProviderHCL+sitetest.OneByOneHCL(s, all[:4]))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectWaiting(t, s.Workers[1])

		w.Write("main.tf", sitetest.ProviderHCL+sitetest.OneByOneHCL(s, slices.Concat(all[:2], all[3:4])))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectWaiting(t, s.ControlPlane[2])
		leftInOrder(t, s, s.ControlPlane[2])
		s.ExpectMembers(t, 2)
		sitetest.ExpectNoChanges(t, w, "after two machines left")

		w.MustRun("destroy", "-auto-approve")
		s.ExpectReset(t)
	})
}

// expectsOne checks that a plan changes one resource alone, with the given operations.
func expectsOne(t *testing.T, w *clitest.Workspace, operation string) {
	t.Helper()

	plan := w.MustRun("plan")
	sitetest.Says(t, plan, operation)
	sitetest.Says(t, plan, "0 to add, 1 to change, 0 to destroy")
}

// leftInOrder checks that a control plane left etcd before it was reset.
func leftInOrder(t *testing.T, s *sitetest.Site, m *sim.Machine) {
	t.Helper()

	first := func(method string) int {
		for _, call := range s.CallsTo(method) {
			if call.Machine == m.Name() {
				return call.Seq
			}
		}

		t.Errorf("%s was not asked to %s", m.Name(), method)

		return 0
	}

	if left, reset := first("EtcdLeaveCluster"), first("Reset"); left > reset {
		t.Errorf("%s was reset before it left etcd", m.Name())
	}
}

// A control plane that bootstraps etcd is recreated next to a living cluster: it joins.
func TestAccMachine_replacedBootstrapOwnerJoins(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccMachine_twoBootstrapOwnersFoundOneCluster",
		"TestBootstrap_isCalledOffWhenAnotherBegan")
	t.Parallel()

	cli := clitest.Any(t)
	s := sitetest.New(t, 3, 0)
	w := oneByOne(t, s, cli).KeepTrace()
	w.MustRun("apply", "-auto-approve", "-replace="+machineAt("cp-1"))

	if got := len(s.CallsTo("Bootstrap")); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}

	s.ExpectMembers(t, 3)

	leftInOrder(t, s, s.ControlPlane[0])

	// Another configuration reaches them one by one, each under the lock of the cluster.
	w.Write("override.tf", `resource "talosop_machine" "this" {
  config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b2" } } })]
}`)

	held := w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after a change of all configurations")

	if !strings.Contains(w.Trace(), "for the lock of the cluster") {
		t.Errorf("no machine waited for its turn:\n%s", held.Output())
	}

	w.MustRun("destroy", "-auto-approve")
	s.ExpectReset(t)
}

// Two machines of one apply have bootstrap = true: one bootstraps etcd, and the other one joins.
func TestAccMachine_twoBootstrapOwnersFoundOneCluster(t *testing.T) {
	t.Parallel()

	cli := clitest.Any(t)
	s := sitetest.New(t, 2, 0)
	config := sitetest.ProviderHCL + sitetest.OneByOneHCL(s, s.Machines())
	config = regexp.MustCompile(`bootstrap +=.*`).ReplaceAllString(config, "bootstrap = true")
	w := sitetest.Applied(t, cli, config)

	if got := len(s.CallsTo("Bootstrap")); got != 1 || s.EtcdClusters() != 1 {
		t.Errorf("etcd was bootstrapped %d times, and there are %d of it", got, s.EtcdClusters())
	}

	s.ExpectMembers(t, 2)
	w.MustRun("destroy", "-auto-approve")
	s.ExpectReset(t)
}

// Machines of both roles whose state was lost are imported. Nothing is sent to them: an apply replaces the former
// object's mark with the new one, and then the plan is empty.
func TestAccMachine_planAfterImportIsEmpty(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_plansNothing", "TestAccWholeCluster_planAfterImportIsEmpty")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		w := oneByOne(t, s, cli)

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		w.Write("secrets.yaml", bundle)

		for _, m := range s.Machines() {
			w.MustRun("state", "rm", machineAt(m.Name()))
			w.MustRun("import", machineAt(m.Name()), tftest.JSON(t, map[string]any{
				"secrets": "secrets.yaml", "control_plane": sitetest.Addresses(s.ControlPlane),
				"machines": sitetest.Addresses([]*sim.Machine{m}),
			}))
		}

		s.ForgetCalls()
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "take cp-1 over from another resource")
		s.ExpectNothingSent(t)

		sitetest.ExpectNoChanges(t, w, "after an import and an apply that marks the nodes")

		w.MustRun("destroy", "-auto-approve")
	})
}

// The others remove a machine that is lost for good from a living cluster.
func TestAccMachine_deadOneIsRemoved(t *testing.T) {
	testenv.BeforeRelease(t, "TestRemoval_ofADeadControlPlaneGoesThroughASurvivor", "TestAccDestroy_withDeadMachine")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		config := func(machines []*sim.Machine) string {
			config := sitetest.OneByOneHCL(s, machines)
			block := config[strings.Index(config, "resource \"talosop_machine\""):]
			config = strings.TrimSuffix(config, block)

			// The state of plugin-testing does not support for_each.
			for _, m := range machines {
				one := strings.NewReplacer("\"this\"", "\""+m.Name()+"\"", "for_each      = local.machines\n", "",
					"each.key", "\""+m.Name()+"\"", "each.value", "local.machines[\""+m.Name()+"\"]")
				config += one.Replace(block)
			}

			return config
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: config(s.ControlPlane)},
				{
					PreConfig: s.ControlPlane[2].PowerOff,
					Config:    config(s.ControlPlane[:2]),
					Check: func(*terraform.State) error {
						s.ExpectMembers(t, 2)

						return nil
					},
				},
			},
		})

		sitetest.ExpectWaiting(t, s.ControlPlane[:2]...)
	})
}
