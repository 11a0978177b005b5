package machines_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// With reboot = "staged" a configuration that needs a reboot waits for the next one, whatever causes it. Nothing
// reboots, plans are empty meanwhile, and state lists what waits. Without it the machines reboot to apply it.
func TestAccStaged_waitsForTheNextReboot(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		w := clitest.NewWorkspace(t, cli)
		write := func(extra string) {
			w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, ""), extra)+`
data "talosop_cluster_health" "this" { cluster = talosop_cluster.this.cluster }

output "staged" { value = data.talosop_cluster_health.this.staged }
`)
		}
		seen := func(machine string) record.Machine { return sitetest.RememberedBy(t, w, sitetest.TheCluster)[machine] }

		write("")
		w.Init()
		w.MustRun("apply", "-auto-approve")

		before, was := boots(s), seen("batch/w-1").ConfigDigest
		staged := func(when string, machines ...string) {
			t.Helper()

			names, _ := w.State().Values.Outputs["staged"].Value.([]any)
			for _, machine := range machines {
				names = slices.DeleteFunc(names, func(name any) bool { return name == seen(machine).NodeName })
			}

			if got, _ := w.State().Values.Outputs["staged"].Value.([]any); len(names) > 0 || len(got) != len(machines) {
				t.Errorf("%s a configuration waits on %v, by the health of the cluster, want %v", when, got, machines)
			}
		}

		const patch = `cluster_config_patches = ["machine: {files: [{path: /var/a, content: a, permissions: 0o644, op: create}]}"]`

		write(patch + "\nreboot = \"staged\"")
		sitetest.Says(t, w.MustRun("plan"), "apply configuration to batch/w-1 (at its next reboot, for machine.files")
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "while configurations wait")
		w.MustRun("apply", "-refresh-only", "-auto-approve")
		staged("after the apply", "cp-1", "batch/w-1")
		nothingBooted(t, s, before)

		for _, machine := range []string{"cp-1", "batch/w-1"} {
			if m := seen(machine); m.StagedDigest == "" || m.StagedDigest == m.ConfigDigest {
				t.Errorf("of %s waits %v", machine, m.StagedDigest)
			}
		}

		if m := seen("batch/w-1"); m.ConfigDigest != was || len(m.Drift) > 0 {
			t.Errorf("w-1 has the configuration %v with the drift %v", m.ConfigDigest, m.Drift)
		}

		s.Workers[0].PowerOff()
		s.Workers[0].PowerOn()
		s.AwaitReady(t)
		w.MustRun("apply", "-refresh-only", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after a machine booted by itself")
		staged("after a boot", "cp-1")

		if m := seen("batch/w-1"); m.StagedDigest != "" || m.ConfigDigest == was {
			t.Errorf("after its boot w-1 has the configuration %v, and %v waits", m.ConfigDigest, m.StagedDigest)
		}

		write(patch)
		planned := w.MustRun("plan")
		sitetest.Says(t, planned, "apply configuration to cp-1 (drain, wait for volumes, reboot for what waits for its next boot)")

		if strings.Contains(planned.Stdout, "configuration to batch/w-1") {
			t.Errorf("w-1, which has booted, is given its configuration again:\n%s", planned.Stdout)
		}

		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the reboots")
		w.MustRun("apply", "-refresh-only", "-auto-approve")
		staged("after the reboots")

		if staged := seen("cp-1").StagedDigest; staged != "" {
			t.Errorf("of cp-1 still waits %v", staged)
		}
	})
}
