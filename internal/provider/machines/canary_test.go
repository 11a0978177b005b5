package machines_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Mistakes in the canary pool are reported at their attributes, before anything is planned.
func TestCanary_mistakes(t *testing.T) {
	t.Parallel()

	const at = `AttributeName("upgrade").AttributeName("canary")`

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"another pool": {canary(tftest.BaseCluster(), "web"), at + `.AttributeName("pool")`, []string{"[canary_pool]", "web", "batch and gpu"}},
		"a long soak": {tftest.With(canary(tftest.BaseCluster(), "batch"), "30m", "upgrade", "canary", "soak"), at + `.AttributeName("soak")`,
			[]string{"[canary_soak]", "Found 30m", "`timeouts.update` is 30m"}},
		"a longer one than given": {tftest.With(canary(tftest.BaseCluster(), "batch"), "10m", "timeouts", "update"),
			at + `.AttributeName("soak")`, []string{"[canary_soak]", "Found 20m", "is 10m"}},
		"no duration": {tftest.With(canary(tftest.BaseCluster(), "batch"), "soon", "upgrade", "canary", "soak"),
			at + `.AttributeName("soak")`, []string{"[invalid_time_limit]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_cluster", test.config), test.at, test.says, false)
		})
	}

	for name, config := range map[string]tftest.Config{
		"a pool":            canary(tftest.BaseCluster(), "gpu"),
		"an unknown pool":   canary(tftest.BaseCluster(), tftest.Unknown{}),
		"unknown pools":     tftest.With(canary(tftest.BaseCluster(), "web"), tftest.Unknown{}, "workers"),
		"an unknown limit":  tftest.With(tftest.With(canary(tftest.BaseCluster(), "gpu"), "3h", "upgrade", "canary", "soak"), tftest.Unknown{}, "timeouts", "update"),
		"time for the soak": tftest.With(tftest.With(canary(tftest.BaseCluster(), "gpu"), "3h", "upgrade", "canary", "soak"), "4h", "timeouts", "update"),
	} {
		if reported := tftest.Validate(t, "talosop_cluster", config); len(reported) > 0 {
			t.Errorf("%s: %s", name, tftest.Show(reported))
		}
	}
}

// The canary pool reboots first, and the others after the soak, of which nothing is left on the nodes.
func TestCanary_goesFirst(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 2)
	at := func(m *sim.Machine) tftest.Config {
		return tftest.Config{"install": tftest.Config{"disk": "/dev/sda"},
			"machines": tftest.Config{"m": tftest.Config{"address": m.Address().String()}}}
	}
	config := tftest.With(tftest.BaseCluster(), at(s.ControlPlane[0]), "control_plane")
	config["workers"] = tftest.Config{"canary": at(s.Workers[0]), "web": at(s.Workers[1])}
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.36.2"
	config["upgrade"] = tftest.Config{"canary": tftest.Config{"pool": "canary", "soak": "1s"}}

	d := tftest.Drive(t, "talosop_cluster", nil)
	d.Apply(t, config).Must(t)

	config["cluster_config_patches"] = []any{`machine: { env: { CHANGED: "yes" } }`}
	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the rollout", config)

	var order []string
	for _, call := range s.CallsTo("Reboot") {
		order = append(order, call.Machine)
	}

	if want := []string{s.Workers[0].Name(), s.ControlPlane[0].Name(), s.Workers[1].Name()}; !slices.Equal(order, want) {
		t.Errorf("the machines %v rebooted, want %v", order, want)
	}
}

// A rollout whose provider was killed in the soak is continued by the next apply, whose plan shows the soak again. A
// canary machine that fails in a soak ends the apply. Nothing outside the pool is touched before.
func TestAccCanary_killedAndFailedInItsSoak(t *testing.T) {
	testenv.BeforeRelease(t, "TestSoak_continuesAfterAnInterrupt", "TestSoak_failureEndsTheRollout", "TestCanary_goesFirst")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		first, other := s.Workers[0], s.Workers[1]
		config := func(env, soak string) string {
			return sitetest.ProviderHCL + sitetest.SecretsHCL + s.ClusterHCL(
				sitetest.PoolHCL("canary", s.Workers[:1], "")+sitetest.PoolHCL("web", s.Workers[1:], ""), `
  cluster_config_patches = ["machine: { env: { CHANGED: `+env+` } }"]
  upgrade                = { canary = { pool = "canary", soak = "`+soak+`" } }
`)
		}
		line := func(soak string) string { return fmt.Sprintf("wait %s while pool canary is observed", soak) }

		w := sitetest.Applied(t, cli, config("one", "10m"))
		api := sitetest.KubernetesAt(t, s.URL, sitetest.BundleIn(t, w))
		t.Cleanup(api.Close)

		await := func(part string) {
			tftest.Must(t, wait.Until(t.Context(), 50*time.Millisecond, func(ctx context.Context) error {
				node, err := api.CoreV1().Nodes().Get(ctx, first.Hostname(), metav1.GetOptions{})
				if err == nil && !strings.Contains(node.Annotations["talosop.dev/canary-soak"], part) {
					err = fmt.Errorf("the node has the annotations %v", node.Annotations)
				}

				return err
			}))
		}
		boots := other.Boots() + s.ControlPlane[0].Boots()
		untouched := func(when string) {
			if now := other.Boots() + s.ControlPlane[0].Boots(); now != boots {
				t.Errorf("%s, other machines were rebooted %d times", when, now-boots)
			}
		}

		w.Write("main.tf", config("two", "10m"))

		killed := w.Start("apply", "-auto-approve")
		await("T") // the time at which the soak began
		killed.KillProvider()

		if result := killed.Wait(); result.Exit == 0 {
			t.Fatalf("the apply was not killed:\n%s", result.Output())
		}

		untouched("after the kill")
		w.Write("main.tf", config("two", "3s"))
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), line("3s"))
		sitetest.ExpectNoChanges(t, w, "after the second apply")

		boots = other.Boots() + s.ControlPlane[0].Boots()

		w.Write("main.tf", config("three", "10m"))

		failing := w.Start("apply", "-auto-approve")
		await("T")
		first.PowerOff()
		first.PowerOn()

		if result := failing.Wait(); result.Exit == 0 || !strings.Contains(result.Output(), "the canary pool failed") {
			t.Fatalf("the apply ended with:\n%s", result.Output())
		}

		untouched("after the failure")
		await("due")
		w.Write("main.tf", config("three", "1s"))
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), line("1s"))
		sitetest.ExpectNoChanges(t, w, "after the last apply")
	})
}
