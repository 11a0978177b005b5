package provider

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// expectOutput checks that a run said something, whatever the width of its lines.
func expectOutput(t *testing.T, r clitest.Result, texts ...string) {
	t.Helper()

	said := strings.Join(strings.Fields(strings.ReplaceAll(r.Output(), "│", " ")), " ")
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("the CLI did not say %q:\n%s", text, r.Output())
		}
	}
}

// expectUntouched checks that a cluster lives whose machines nobody reset.
func (s *site) expectUntouched(t *testing.T) {
	t.Helper()

	for _, method := range []string{"Reset", "EtcdLeaveCluster", "EtcdRemoveMemberByID"} {
		if calls := s.CallsTo(method); len(calls) > 0 {
			t.Errorf("machines were asked to %s: %v", method, calls)
		}
	}

	s.expectMembers(t, len(s.controlPlane))
}

// Three control planes whose keys were renamed without moved: the plan that would reset what it makes is refused. Where
// the creates went first, the members are taken over, and the old objects leave them alone.
func TestAccOwnership_renamedKeys(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 0)
		w := s.oneByOne(t, cli)

		renamed := strings.NewReplacer("    cp-", "    plane-").Replace(s.oneByOneHCL(s.controlPlane))
		renamed = strings.Replace(renamed, `each.key == "cp-1"`, "false", 1)
		w.Write("main.tf", secretsProvider+renamed)

		refused := w.Run("plan")
		if refused.Exit == 0 {
			t.Fatalf("the plan was not refused:\n%s", refused.Output())
		}

		expectOutput(t, refused, "Machine of one resource planned for another", "moved {")

		w.MustRun("apply", "-auto-approve", `-target=talosop_machine.this["plane-1"]`,
			`-target=talosop_machine.this["plane-2"]`, `-target=talosop_machine.this["plane-3"]`)
		expectOutput(t, w.MustRun("apply", "-auto-approve"), "Machines were left to another resource")

		s.expectUntouched(t)
		expectNoChanges(t, w, "after the keys were renamed")

		w.MustRun("destroy", "-auto-approve")
		s.expectReset(t)
	})
}

// Keys that were renamed with moved change nothing but the names.
func TestAccOwnership_movedKeys(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 1)
		w := s.oneByOne(t, cli)

		renamed := strings.NewReplacer("    w-1", "    batch-1").Replace(s.oneByOneHCL(s.Machines()))
		w.Write("main.tf", secretsProvider+renamed+`
moved {
  from = talosop_machine.this["w-1"]
  to   = talosop_machine.this["batch-1"]
}
`)
		w.MustRun("apply", "-auto-approve")
		s.expectUntouched(t)
		expectNoChanges(t, w, "after the key was moved")
	})
}

// An object that is created before the one that it replaces takes the machines over.
func TestAccOwnership_createBeforeDestroy(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 0)
		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", secretsProvider+secretsHCL+s.controlPlaneHCL(`
  deletion_protection = false

  lifecycle { create_before_destroy = true }
`))
		w.Init()
		w.MustRun("apply", "-auto-approve")

		replaced := w.MustRun("apply", "-auto-approve", "-replace=talosop_control_plane.this")
		expectOutput(t, replaced, "Machines were left to another resource")
		s.expectUntouched(t)
		expectNoChanges(t, w, "after the replacement")
	})
}

// Two states hold one cluster: the one that came last owns it, the other one sees that as drift, and a destroy there
// leaves the cluster alone.
func TestAccOwnership_twoStates(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 1)
		first := s.oneByOne(t, cli)

		bundle, _ := first.Attribute("talosop_secrets.this", "bundle").(string)

		second := clitest.NewWorkspace(t, cli)
		second.Write("secrets.yaml", bundle)
		second.Write("main.tf", secretsProvider+s.oneByOneHCL(s.Machines()))
		second.Init()
		second.MustRun("import", "talosop_secrets.this", "secrets.yaml")
		second.MustRun("apply", "-auto-approve")

		expectOutput(t, first.MustRun("plan"), "take cp-1 over from another resource")
		expectOutput(t, first.MustRun("destroy", "-auto-approve"), "Machines were left to another resource")
		s.expectUntouched(t)
		expectNoChanges(t, second, "after the first state was destroyed")
	})
}
