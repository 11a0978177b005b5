package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// protected is a configuration of new secrets whose machines have deletion protection.
func protected(hcl string) string {
	before, machines, _ := strings.Cut(hcl, sitetest.SecretsHCL)

	return before + sitetest.SecretsHCL + strings.ReplaceAll(machines, "deletion_protection = false",
		"deletion_protection = true")
}

// The keys of three protected control planes are renamed without moved: the plan that would reset the machines it
// creates is refused. When the creates ran first, the members are taken over, and the old objects are removed and
// leave them unchanged.
func TestAccOwnership_renamedKeys(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+protected(sitetest.OneByOneHCL(s, s.ControlPlane)))

		renamed := strings.NewReplacer("    cp-", "    plane-", `each.key == "cp-1"`, "false").
			Replace(sitetest.ProviderHCL + sitetest.OneByOneHCL(s, s.ControlPlane))
		w.Write("main.tf", protected(renamed))

		refused := w.Run("plan")
		if refused.Exit == 0 {
			t.Fatalf("the plan was not refused:\n%s", refused.Output())
		}

		sitetest.Says(t, refused, "moved {")
		sitetest.Shows(t, refused, "machine_planned_twice")

		creates := []string{"apply", "-auto-approve", `-target=talosop_machine.this["plane-1"]`,
			`-target=talosop_machine.this["plane-2"]`, `-target=talosop_machine.this["plane-3"]`}

		// A create knows no running nodes, and gives them no other names. The next apply knows them.
		sitetest.Says(t, w.MustRun(creates...), "Incomplete create of machine", "runs as node cp-",
			"its new name would be plane-")
		w.MustRun(creates...)

		removal := w.MustRun("apply", "-auto-approve")
		sitetest.Shows(t, removal, "machines_of_others", "machines_relinquished")

		if sitetest.Shown(t, "machines_wiped").MatchString(removal.Output()) {
			t.Errorf("the plan warns of what does not happen:\n%s", removal.Output())
		}

		s.ExpectUntouched(t)
		sitetest.ExpectNoChanges(t, w, "after the keys were renamed")

		w.Write("main.tf", renamed)
		w.MustRun("apply", "-auto-approve")
		w.MustRun("destroy", "-auto-approve")
		s.ExpectReset(t)
	})
}

// Keys that are renamed with moved change only the names.
func TestAccOwnership_movedKeys(t *testing.T) {
	testenv.BeforeRelease(t, "TestOwnership_goesToTheLastOne", "TestAccOwnership_renamedKeys")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		w := oneByOne(t, s, cli)

		renamed := strings.NewReplacer("    w-1", "    batch-1").Replace(sitetest.OneByOneHCL(s, s.Machines()))
		w.Write("main.tf", sitetest.ProviderHCL+renamed+`
moved {
  from = talosop_machine.this["w-1"]
  to   = talosop_machine.this["batch-1"]
}
`)
		w.MustRun("apply", "-auto-approve")
		s.ExpectUntouched(t)
		sitetest.ExpectNoChanges(t, w, "after the key was moved")
	})
}

// An object that is created before the one that it replaces takes the machines over.
func TestAccOwnership_createBeforeDestroy(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL(`
  deletion_protection = false

  lifecycle { create_before_destroy = true }
`))

		replaced := w.MustRun("apply", "-auto-approve", "-replace=talosop_control_plane.this")
		sitetest.Shows(t, replaced, "machines_relinquished")
		s.ExpectUntouched(t)
		sitetest.ExpectNoChanges(t, w, "after the replacement")
	})
}

// Two states hold one cluster: the later one owns it, and the other one reports that as drift. A destroy of the
// other state leaves the cluster unchanged and protected.
func TestAccOwnership_twoStates(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		first := sitetest.Applied(t, cli, sitetest.ProviderHCL+protected(sitetest.OneByOneHCL(s, s.Machines())))

		bundle, _ := first.Attribute("talosop_secrets.this", "bundle").(string)

		second := clitest.NewWorkspace(t, cli)
		second.Write("secrets.yaml", bundle)
		second.Write("main.tf", sitetest.ProviderHCL+sitetest.OneByOneHCL(s, s.Machines()))
		second.Init()
		second.MustRun("import", "talosop_secrets.this", "secrets.yaml")
		second.MustRun("apply", "-auto-approve")

		sitetest.Says(t, first.MustRun("plan"), "take cp-1 over from another resource")
		sitetest.Shows(t, first.MustRun("destroy", "-auto-approve"), "machines_relinquished")
		s.ExpectUntouched(t)
		sitetest.ExpectNoChanges(t, second, "after the first state was destroyed")
	})
}

// A control plane consists of two resources: a disk that is lost in one of them is repaired through the other, and
// the destroy of one leaves the members of the other a quorum.
func TestAccOwnership_mixedControlPlane(t *testing.T) {
	testenv.BeforeRelease(t, "TestOwnership_goesToTheLastOne", "TestAccOwnership_renamedKeys")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		w := clitest.NewWorkspace(t, cli)
		machines := strings.TrimPrefix(sitetest.OneByOneHCL(s, s.ControlPlane[1:]), sitetest.SecretsHCL)
		machines = strings.Replace(machines, `each.key == "cp-1"`, "false", 1)
		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneOf(s.ControlPlane[:1], "")+machines)
		w.Init()
		w.MustRun("apply", "-auto-approve")
		s.ExpectMembers(t, 3)
		sitetest.ExpectNoChanges(t, w, "after the create")

		s.ControlPlane[0].Wipe()
		s.ControlPlane[0].PowerOn()
		tftest.Must(t, s.ControlPlane[0].AwaitStage(t.Context(), sim.StageMaintenance))

		repaired := w.MustRun("apply", "-auto-approve")
		if strings.Contains(repaired.Output(), "restore_from") {
			t.Errorf("a restore was advised:\n%s", repaired.Output())
		}

		s.ExpectMembers(t, 3)
		sitetest.ExpectNoChanges(t, w, "after the repair")

		w.MustRun("destroy", "-auto-approve", "-target=talosop_control_plane.this")
		leftInOrder(t, s, s.ControlPlane[0])
		s.ExpectMembers(t, 2)
		sitetest.ExpectWaiting(t, s.ControlPlane[0])
	})
}

// The disk of the machine that serves the Kubernetes API is lost. Because control planes of other resources are
// recorded, the plan does not advise a restore, and etcd takes the machine back through them.
func TestAccOwnership_mixedWithoutTheAPI(t *testing.T) {
	testenv.BeforeRelease(t, "TestOwnership_claimedInTheProcess", "TestRemoval_ofTheLastWithoutTheLock")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		s.URL = "https://" + s.ControlPlane[0].Address().String() + ":6443"
		machines := strings.TrimPrefix(sitetest.OneByOneHCL(s, s.ControlPlane[1:]), sitetest.SecretsHCL)
		machines = strings.Replace(machines, `each.key == "cp-1"`, "false", 1)
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneOf(s.ControlPlane[:1],
			"")+machines)
		w.MustRun("apply", "-auto-approve") // it sees the others, which joined later

		s.ControlPlane[0].Wipe()
		s.ControlPlane[0].PowerOn()
		tftest.Must(t, s.ControlPlane[0].AwaitStage(t.Context(), sim.StageMaintenance))

		repaired := w.MustRun("apply", "-auto-approve")
		if strings.Contains(repaired.Output(), "restore_from") {
			t.Errorf("a restore was advised:\n%s", repaired.Output())
		}

		s.ExpectMembers(t, 3)
		sitetest.ExpectNoChanges(t, w, "after the repair")

		s.ControlPlane[0].Wipe()
		s.ControlPlane[0].PowerOn()
		tftest.Must(t, s.ControlPlane[0].AwaitStage(t.Context(), sim.StageMaintenance))

		sitetest.Shows(t, w.MustRun("destroy", "-auto-approve", "-target=talosop_control_plane.this"), "machines_destroyed")
		s.ExpectMembers(t, 2)
	})
}

// A control plane moves from one type of resource to another: the old one is forgotten, the new ones take it over.
func TestAccOwnership_anotherType(t *testing.T) {
	testenv.BeforeRelease(t, "TestOwnership_goesToTheLastOne", "TestAccOwnership_twoStates")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL(""))

		w.Write("main.tf", sitetest.ProviderHCL+sitetest.OneByOneHCL(s, s.ControlPlane))
		sitetest.Shows(t, w.Run("plan"), "machine_planned_twice")

		w.Write("main.tf", sitetest.ProviderHCL+sitetest.OneByOneHCL(s, s.ControlPlane)+`
removed {
  from = talosop_control_plane.this
  lifecycle {
    destroy = false
  }
}
`)
		w.MustRun("apply", "-auto-approve")
		s.ExpectUntouched(t)
		sitetest.ExpectNoChanges(t, w, "after the move")
	})
}

// The plan that is refused lists what -replace would wipe, and so does the one that allows it: the CLIs show no
// warning of the provider in the plan of the replacement itself.
func TestAccReplace_option(t *testing.T) {
	testenv.BeforeRelease(t, "TestPlan_replaceOption", "TestPlan_replacements")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		const (
			option = "-replace=talosop_control_plane.this"
			last   = "reset cp-1, the last control plane"
		)

		s := sitetest.New(t, 1, 0)
		hcl := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("\n  deletion_protection = false\n")
		w := sitetest.Applied(t, cli, protected(hcl))

		refused := w.Run("plan", option)
		if refused.Exit == 0 {
			t.Fatalf("the plan was not refused:\n%s", refused.Output())
		}

		sitetest.Shows(t, refused, "deletion_protection")
		sitetest.Says(t, refused, last)

		w.Write("main.tf", hcl)
		unprotected := w.MustRun("apply", "-auto-approve")
		sitetest.Shows(t, unprotected, "deletion_protection_disabled")
		sitetest.Says(t, unprotected, last)

		w.MustRun("apply", "-auto-approve", option)
		sitetest.ExpectNoChanges(t, w, "after the replacement")
		s.ExpectMembers(t, 1)
	})
}

// On metal a cluster is renamed while it runs, and its workers follow.
func TestAccReplace_renamedCluster(t *testing.T) {
	testenv.BeforeRelease(t, "TestPlan_renamedCluster", "TestPlan_replacements")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 1)
		hcl := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL("")
		w := sitetest.Applied(t, cli, hcl)

		boots := map[*sim.Machine]int{}
		for _, m := range s.Machines() {
			boots[m] = m.Boots()
		}

		w.Write("main.tf", strings.Replace(hcl, `"test"`, `"renamed"`, 1))

		renamed := w.MustRun("apply", "-auto-approve")
		sitetest.Says(t, renamed, "Plan: 0 to add, 2 to change, 0 to destroy", "apply configuration to cp-1",
			"apply configuration to w-1")
		sitetest.ExpectNoChanges(t, w, "after the cluster was renamed")

		for _, m := range s.Machines() {
			if !strings.Contains(string(m.Config()), "clusterName: renamed") || m.Boots() != boots[m] {
				t.Errorf("%s does not know the new name, or booted for it", m.Hostname())
			}
		}

		s.ExpectUntouched(t)

		for address, id := range map[string]string{"talosop_control_plane.this": "renamed", "talosop_worker.this": "renamed/worker"} {
			if w.Attribute(address, "id") != id || w.Attribute(address, "phase") != "Ready" {
				t.Errorf("%s is %v in phase %v", address, w.Attribute(address, "id"), w.Attribute(address, "phase"))
			}
		}
	})
}
