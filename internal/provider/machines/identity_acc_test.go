package machines_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// uuidOverride is the key of META by which a machine reports another UUID.
const uuidOverride = 0x0f

// Other machines answer at the addresses of workers, a member of the same cluster and one in maintenance mode. They
// are reported and refused in every run, and nothing is sent to them.
func TestAccHardware_unexpectedMachinesAreRefused(t *testing.T) {
	t.Parallel()

	const other, another = "4c4c4544-0042-3510-8053-b4c04f435931", "4c4c4544-0042-3510-8053-b4c04f435932"

	cli := clitest.Any(t)
	s := sitetest.New(t, 1, 2)
	member, waiting := s.Workers[0], s.Workers[1]

	w := s.Quickstart(t, cli, map[string]any{"deletion_protection": false})
	w.MustRun("apply", "-auto-approve")

	member.SetMeta(uuidOverride, other)
	waiting.Wipe()
	waiting.SetMeta(uuidOverride, another)
	waiting.PowerOn()

	if err := waiting.AwaitStage(t.Context(), sim.StageMaintenance); err != nil {
		t.Fatal(err)
	}

	s.ForgetCalls()

	areRecorded := func(when string) {
		machines, _ := w.Attribute("talosop_worker.this", "observed").(map[string]any)
		for _, m := range s.Workers {
			if record, _ := machines[m.Name()].(map[string]any); record["uuid"] != m.UUID() || record["stage"] != "running" {
				t.Errorf("%s the record of %s is %v", when, m.Name(), record)
			}
		}
	}

	refresh := w.MustRun("apply", "-refresh-only", "-auto-approve")
	sitetest.Shows(t, refresh, "identity_mismatch")
	sitetest.Says(t, refresh, "w-2 ("+waiting.Address().String()+"): responds as another machine: UUID "+another+", expected "+
		waiting.UUID())
	areRecorded("after a refresh")

	plan := w.MustRun("plan")
	sitetest.Says(t, plan, `+ "wait for w-2",`)
	sitetest.Says(t, plan, "0 to add, 1 to change, 0 to destroy")

	w.Write("override.tf", `resource "talosop_worker" "this" {
  config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b2" } } })]
}`)

	for _, command := range [][]string{{"apply", "-auto-approve"},
		{"destroy", "-auto-approve", "-target=talosop_worker.this"}} {
		for range 2 {
			result := w.Run(command...)
			if result.Exit != 1 {
				t.Fatalf("%s: exit %d:\n%s", command[0], result.Exit, result.Output())
			}

			sitetest.Says(t, result, "responds as another machine")
			sitetest.Says(t, result, other+", expected "+member.UUID())
		}

		areRecorded("after " + command[0])
	}

	s.ExpectNothingSent(t)

	member.DeleteMeta(uuidOverride)
	w.MustRun("destroy", "-auto-approve")
}
