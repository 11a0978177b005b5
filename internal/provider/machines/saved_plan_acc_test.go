package machines_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Plans of every resource with machines are saved and applied. A plan that creates a cluster contains no secret.
// Later ones contain only those of the state, marked as sensitive. A stale plan fails before it contacts a machine.
func TestAccSavedPlan_ofEveryResourceWithMachines(t *testing.T) {
	t.Parallel()

	for name, config := range map[string]func(s *sitetest.Site, patch string) string{
		"control plane and workers": func(s *sitetest.Site, patch string) string {
			return s.ControlPlaneHCL(patch) + s.WorkersHCL(patch)
		},
		"cluster": func(s *sitetest.Site, patch string) string {
			return s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, patch), "")
		},
		"single machines": func(s *sitetest.Site, patch string) string {
			single := strings.TrimPrefix(sitetest.OneByOneHCL(s, s.Machines()), sitetest.SecretsHCL)

			return strings.Replace(single, "deletion_protection = false", "deletion_protection = false\n"+patch, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
				s := sitetest.New(t, 1, 1)
				w := clitest.NewWorkspace(t, cli)
				write := func(patch string) { w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+config(s, patch)) }

				write("")
				w.Init()

				shown, content := w.SavedPlan("create.plan")
				w.MustRun("apply", "create.plan")

				bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
				sitetest.HoldsNone(t, bundle, map[string]string{
					"the plan of the create": shown, "its file": content, "private state": sitetest.PrivateIn(t, w.Read("terraform.tfstate")),
				})

				if !strings.Contains(content, s.URL) || !strings.Contains(w.Read("terraform.tfstate"),
					tftest.SecretsIn(bundle)[0]) {
					t.Error("the search would find nothing")
				}

				write(`config_patches = ["machine: { sysctls: { net.core.somaxconn: \"65535\" } }"]`)

				shown, _ = w.SavedPlan("change.plan")
				sitetest.HoldsNone(t, bundle, map[string]string{"the plan of the change": sitetest.WithoutSensitive(t, shown)})

				s.ForgetCalls()
				sitetest.Says(t, sitetest.Fails(t, w, "apply", "create.plan"), "Saved plan is stale")
				s.ExpectNothingSent(t)

				w.MustRun("apply", "change.plan")
				sitetest.ExpectNoChanges(t, w, "after the change")
				s.ForgetCalls()
				sitetest.Says(t, sitetest.Fails(t, w, "apply", "change.plan"), "Saved plan is stale")
				s.ExpectNothingSent(t)

				shown, _ = w.SavedPlan("destroy.plan", "-destroy")
				sitetest.HoldsNone(t, bundle, map[string]string{"the plan of the destroy": sitetest.WithoutSensitive(t, shown),
					"private state": sitetest.PrivateIn(t, w.Read("terraform.tfstate"))})
				w.MustRun("apply", "destroy.plan")

				for _, m := range s.Machines() {
					if m.Configured() || m.Stage() != sim.StageMaintenance {
						t.Errorf("after the destroy %s is %s", m.Name(), m.Stage())
					}
				}
			})
		})
	}
}

// The same for machines in pods, with a host whose credentials are in no plan.
func TestAccSavedPlan_ofPods(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccSavedPlan_ofEveryResourceWithMachines", "TestContainer_warnsOfAWriteOnlyKubeconfig")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newHostSite(t)
		w := clitest.NewWorkspace(t, cli)
		write := func(workers int) {
			w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.stackHCL(workers))
		}
		kubeconfig := tftest.ReadFile(t, s.Kubeconfig())

		write(1)
		w.Init()

		shown, content := w.SavedPlan("create.plan")
		w.MustRun("apply", "create.plan")

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		sitetest.HoldsNone(t, bundle, map[string]string{"the plan of the create": shown, "its file": content})

		write(2)

		shown, _ = w.SavedPlan("growth.plan")
		sitetest.HoldsNone(t, bundle, map[string]string{"the plan of the growth": sitetest.WithoutSensitive(t, shown)})

		if leak := sitetest.Leaked(kubeconfig, shown+content+w.PlanFile("growth.plan")); leak != "" {
			t.Errorf("a plan holds credentials of the host: %s", leak)
		}

		before := s.podUIDs(t)
		sitetest.Says(t, sitetest.Fails(t, w, "apply", "create.plan"), "Saved plan is stale")

		if now := s.podUIDs(t); !maps.Equal(now, before) {
			t.Errorf("a stale plan changed the pods: %v, not %v", now, before)
		}

		w.MustRun("apply", "growth.plan")
		sitetest.ExpectNoChanges(t, w, "after the growth")

		if pods := s.podUIDs(t); len(pods) != 3 {
			t.Errorf("there are %d pods", len(pods))
		}

		w.SavedPlan("destroy.plan", "-destroy")
		w.MustRun("apply", "destroy.plan")
		s.expectNothing(t, "dev")
	})
}
