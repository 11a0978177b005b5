package machines_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Upgrades of Kubernetes in living clusters, under the CLIs and on simulated machines.

const (
	oldKubernetes = "v1.35.4"
	newKubernetes = "v1.36.3"
)

// withKubernetes is a configuration with another Kubernetes.
func withKubernetes(config, version string) string {
	return strings.ReplaceAll(config, "v1.36.2", version)
}

// boots counts the boots of all machines.
func boots(s *sitetest.Site) map[string]int {
	boots := map[string]int{}
	for _, m := range s.Machines() {
		boots[m.Name()] = m.Boots()
	}

	return boots
}

// nothingBooted checks that no machine booted since its boots were counted.
func nothingBooted(t *testing.T, s *sitetest.Site, before map[string]int) {
	t.Helper()

	for _, m := range s.Machines() {
		if m.Boots() != before[m.Name()] {
			t.Errorf("%s booted %d times more", m.Name(), m.Boots()-before[m.Name()])
		}
	}
}

// runsKubernetes checks the record of one machine in state: its images and the versions that run.
func runsKubernetes(address, machine string, controlPlane bool, version string) statecheck.StateCheck {
	running := map[kubenames.Component]string{kubenames.Kubelet: version}
	images := kubenames.Images{kubenames.Kubelet: "ghcr.io/siderolabs/kubelet:" + version}

	if controlPlane {
		for _, c := range kubenames.StaticPods() {
			running[c], images[c] = version, "registry.k8s.io/"+string(c)+":"+version
		}

		images[kubenames.KubeProxy] = "registry.k8s.io/kube-proxy:" + version
	}

	return sitetest.Remembers(address, machine, func(m record.Machine) bool {
		return maps.Equal(m.Running, running) && maps.Equal(m.Images, images) && len(m.Drift) == 0
	})
}

func manifestsAre(address, version string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("bootstrap_manifests_version"),
		knownvalue.StringExact(version))
}

// Kubernetes is upgraded by one minor version in a whole cluster, without a reboot. An image that is changed by hand
// afterwards is reported and repaired, and a downgrade is refused.
func TestAccKubernetesUpgrade_ofAWholeCluster(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)
		config := func(version string) string {
			return withKubernetes(sitetest.SecretsHCL+s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, ""), settledInTime),
				version)
		}

		var before map[string]int

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config:           config(oldKubernetes),
					ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{runsKubernetes(sitetest.TheCluster, "cp-1", true, oldKubernetes),
						manifestsAre(sitetest.TheCluster, oldKubernetes)},
				},
				{
					PreConfig: func() { before = boots(s) },
					Config:    config(newKubernetes),
					ConfigPlanChecks: emptyAfterwards(sitetest.OperationsAre(sitetest.TheCluster,
						upgradeSteps(s)...)),
					ConfigStateChecks: []statecheck.StateCheck{
						runsKubernetes(sitetest.TheCluster, "cp-1", true, newKubernetes),
						runsKubernetes(sitetest.TheCluster, "cp-3", true, newKubernetes),
						runsKubernetes(sitetest.TheCluster, "batch/w-2", false, newKubernetes),
						sitetest.PhaseIs(sitetest.TheCluster, "Ready"), manifestsAre(sitetest.TheCluster, newKubernetes),
					},
				},
				{PreConfig: func() { nothingBooted(t, s, before) }, Config: config(oldKubernetes),
					ExpectError: sitetest.Message("cannot be downgraded from v1.36 to v1.35")},
			},
		})
	})
}

// upgradeSteps are the operations of an upgrade of the whole cluster of a site.
func upgradeSteps(s *sitetest.Site) []string {
	var planes, workers []string
	for _, m := range s.ControlPlane {
		planes = append(planes, m.Name())
	}

	for _, m := range s.Workers {
		workers = append(workers, "batch/"+m.Name())
	}

	var steps []string

	on := func(component string, machines []string) {
		steps = append(steps, fmt.Sprintf("upgrade %s on %s: %s -> %s", component, finding.Describe(machines), oldKubernetes,
			newKubernetes))
	}

	on("kube-apiserver, kube-controller-manager, kube-scheduler and kube-proxy", planes)
	on("kubelet", slices.Concat(planes, workers))

	return append(steps, fmt.Sprintf("sync the bootstrap manifests of Kubernetes %s from cp-1", newKubernetes))
}

// A control plane, two pools of workers and a single machine are one cluster: all follow its version in one apply,
// and none undoes another's change.
func TestAccKubernetesUpgrade_ofSeveralResources(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccKubernetesUpgrade_ofAWholeCluster")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 3)
		config := func(version string) string {
			return withKubernetes(sitetest.SecretsHCL+s.ControlPlaneHCL(settledInTime)+
				s.WorkersOf(s.Workers[:1], `name = "a"`)+
				strings.Replace(s.WorkersOf(s.Workers[1:2], `name = "b"`), `"this"`, `"other"`, 1)+
				machineHCL(s.Workers[2]), version)
		}

		addresses := []string{"talosop_control_plane.this", "talosop_worker.this", "talosop_worker.other",
			"talosop_machine.extra"}

		var before map[string]int

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: config(oldKubernetes), ConfigPlanChecks: emptyAfterwards()},
				{
					PreConfig:        func() { before = boots(s) },
					Config:           config(newKubernetes),
					ConfigPlanChecks: emptyAfterwards(updates(addresses...)...),
					ConfigStateChecks: []statecheck.StateCheck{
						runsKubernetes(addresses[0], "cp-2", true, newKubernetes),
						runsKubernetes(addresses[1], "w-1", false, newKubernetes),
						runsKubernetes(addresses[2], "w-2", false, newKubernetes),
						runsKubernetes(addresses[3], "", false, newKubernetes),
						manifestsAre(addresses[0], newKubernetes),
						statecheck.ExpectKnownValue(addresses[3], tfjsonpath.New("bootstrap_manifests_version"), knownvalue.Null()),
					},
				},
				{PreConfig: func() { nothingBooted(t, s, before); s.ForgetCalls() }, Config: config(newKubernetes)},
				{PreConfig: func() { s.ExpectNothingSent(t) }, Config: config(newKubernetes)},
			},
		})
	})
}

// machineHCL is a single worker in the cluster of the configuration.
func machineHCL(m *sim.Machine) string {
	return fmt.Sprintf(`
resource "talosop_machine" "extra" {
  cluster       = talosop_control_plane.this.cluster
  name          = %q
  role          = "worker"
  address       = %q
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
}
`, m.Name(), m.Address())
}

// updates checks that a plan changes resources in place.
func updates(addresses ...string) []plancheck.PlanCheck {
	checks := make([]plancheck.PlanCheck, len(addresses))
	for i, address := range addresses {
		checks[i] = plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)
	}

	return checks
}

// Control planes and workers in separate resources are upgraded in parallel: they take turns, none leaves the others
// behind, and all plans are empty afterwards.
func TestAccKubernetesUpgrade_machinesTakeTurns(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestAccKubernetesUpgrade_ofAWholeCluster", "TestAccMachines_takeTurns")

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 1)
		w := clitest.NewWorkspace(t, cli)
		write := func(version string) {
			patient := strings.Replace(sitetest.OneByOneHCL(s, s.Machines()), "for_each ",
				"timeouts      = { update = \"120s\" }\n  for_each ", 1)
			w.Write("main.tf", sitetest.ProviderHCL+withKubernetes(patient, version))
		}

		write(oldKubernetes)
		w.Init()
		w.MustRun("apply", "-auto-approve")
		write(newKubernetes)
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the upgrade")

		for _, m := range s.Machines() {
			running := sitetest.RememberedBy(t, w, machineAt(m.Name()))[m.Name()].Running

			want := 1
			if slices.Contains(s.ControlPlane, m) {
				want = 4
			}

			if len(running) != want {
				t.Errorf("%s runs %v", m.Name(), running)
			}

			for component, version := range running {
				if version != newKubernetes {
					t.Errorf("%s of %s is at %v", component, m.Name(), version)
				}
			}
		}

		for _, m := range s.ControlPlane {
			if got := w.Attribute(machineAt(m.Name()), "bootstrap_manifests_version"); got != newKubernetes {
				t.Errorf("the bootstrap manifests of %s are those of %v", m.Name(), got)
			}
		}

		w.MustRun("destroy", "-auto-approve")
	})
}
