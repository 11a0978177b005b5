package provider

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
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Upgrades of Kubernetes of living clusters, under the CLIs and on simulated machines.

const (
	oldKubernetes = "v1.35.4"
	newKubernetes = "v1.36.3"
)

// withKubernetes is a configuration with another Kubernetes.
func withKubernetes(config, version string) string {
	return strings.ReplaceAll(config, "v1.36.2", version)
}

// boots counts the boots of all machines.
func (s *site) boots() map[string]int {
	boots := map[string]int{}
	for _, m := range s.Machines() {
		boots[m.Name()] = m.Boots()
	}

	return boots
}

// nothingBooted checks that no machine booted since its boots were counted.
func (s *site) nothingBooted(t *testing.T, before map[string]int) {
	t.Helper()

	for _, m := range s.Machines() {
		if m.Boots() != before[m.Name()] {
			t.Errorf("%s booted %d times more", m.Name(), m.Boots()-before[m.Name()])
		}
	}
}

// runsKubernetes checks what state remembers of one machine: the images that it has and the versions that run.
func runsKubernetes(address, machine string, controlPlane bool, version string) statecheck.StateCheck {
	running := map[kubenames.Component]string{kubenames.Kubelet: version}
	images := kubenames.Images{kubenames.Kubelet: "ghcr.io/siderolabs/kubelet:" + version}

	if controlPlane {
		for _, c := range kubenames.StaticPods() {
			running[c], images[c] = version, "registry.k8s.io/"+string(c)+":"+version
		}

		images[kubenames.KubeProxy] = "registry.k8s.io/kube-proxy:" + version
	}

	return remembers(address, machine, func(m record.Machine) bool {
		return maps.Equal(m.Running, running) && maps.Equal(m.Images, images) && len(m.Drift) == 0
	})
}

func manifestsAre(address, version string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("bootstrap_manifests_version"),
		knownvalue.StringExact(version))
}

// Kubernetes goes one minor version up in a whole cluster, without a reboot; an image that
// somebody changes afterwards is told and put right, and there is no way back.
func TestAccKubernetesUpgrade_ofAWholeCluster(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 2)
		config := func(version string) string {
			return withKubernetes(secretsHCL+s.clusterHCL(poolHCL("batch", s.workers, ""), settledInTime), version)
		}

		var before map[string]int

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{
					Config:           config(oldKubernetes),
					ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{runsKubernetes(theCluster, "cp-1", true, oldKubernetes),
						manifestsAre(theCluster, oldKubernetes)},
				},
				{
					PreConfig:        func() { before = s.boots() },
					Config:           config(newKubernetes),
					ConfigPlanChecks: emptyAfterwards(operationsAre(theCluster, append([]string{"in all: 19 operations on 5 machines; .*"}, upgradeSteps(s)...)...)),
					ConfigStateChecks: []statecheck.StateCheck{
						runsKubernetes(theCluster, "cp-1", true, newKubernetes),
						runsKubernetes(theCluster, "cp-3", true, newKubernetes),
						runsKubernetes(theCluster, "batch/w-2", false, newKubernetes),
						phaseIs(theCluster, "Ready"), manifestsAre(theCluster, newKubernetes),
					},
				},
				{PreConfig: func() { s.nothingBooted(t, before) }, Config: config(oldKubernetes),
					ExpectError: message("cannot go back from v1.36 to v1.35")},
			},
		})
	})
}

// upgradeSteps are the operations of an upgrade of the whole cluster of a site.
func upgradeSteps(s *site) []string {
	var planes []string
	for _, m := range s.controlPlane {
		planes = append(planes, m.Name())
	}

	steps := []string{fmt.Sprintf("pull the images of Kubernetes %s on cp-1, .* and batch/w-2", newKubernetes)}
	one := func(component, machine string) {
		steps = append(steps, fmt.Sprintf("upgrade %s on %s: %s -> %s", component, machine, oldKubernetes, newKubernetes))
	}

	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
		"kubelet"} {
		for _, plane := range planes {
			one(component, plane)
		}
	}

	for _, m := range s.workers {
		one("kubelet", "batch/"+m.Name())
	}

	return append(steps, fmt.Sprintf("sync the bootstrap manifests of Kubernetes %s from cp-1", newKubernetes))
}

// A control plane, two pools of workers and a machine of its own are one cluster: all follow
// its version in one apply, and none undoes what another did.
func TestAccKubernetesUpgrade_ofSeveralResources(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccKubernetesUpgrade_ofAWholeCluster")
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 3)
		config := func(version string) string {
			return withKubernetes(secretsHCL+s.controlPlaneHCL(settledInTime)+
				s.workersOf(s.workers[:1], `name = "a"`)+
				strings.Replace(s.workersOf(s.workers[1:2], `name = "b"`), `"this"`, `"other"`, 1)+
				machineHCL(s.workers[2]), version)
		}

		addresses := []string{"talosop_control_plane.this", "talosop_worker.this", "talosop_worker.other",
			"talosop_machine.extra"}

		var before map[string]int

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{Config: config(oldKubernetes), ConfigPlanChecks: emptyAfterwards()},
				{
					PreConfig:        func() { before = s.boots() },
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
				{PreConfig: func() { s.nothingBooted(t, before); s.ForgetCalls() }, Config: config(newKubernetes)},
				{PreConfig: func() { s.nothingWasSent(t) }, Config: config(newKubernetes)},
			},
		})
	})
}

// machineHCL is a worker of its own in the cluster of the configuration.
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

// Control planes and workers that are resources of their own are upgraded side by side: they
// take turns, none leaves the others behind, and all are content afterwards.
func TestAccKubernetesUpgrade_machinesTakeTurns(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestAccKubernetesUpgrade_ofAWholeCluster", "TestAccMachines_takeTurns")

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 1)
		w := clitest.NewWorkspace(t, cli)
		write := func(version string) {
			patient := strings.Replace(s.oneByOneHCL(s.Machines()), "for_each ",
				"timeouts      = { update = \"120s\" }\n  for_each ", 1)
			w.Write("main.tf", secretsProvider+withKubernetes(patient, version))
		}

		write(oldKubernetes)
		w.Init()
		w.MustRun("apply", "-auto-approve")
		write(newKubernetes)
		w.MustRun("apply", "-auto-approve")
		expectNoChanges(t, w, "after the upgrade")

		for _, m := range s.Machines() {
			running := rememberedBy(t, w, machineAt(m.Name()))[m.Name()].Running

			want := 1
			if slices.Contains(s.controlPlane, m) {
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

		for _, m := range s.controlPlane {
			if got := w.Attribute(machineAt(m.Name()), "bootstrap_manifests_version"); got != newKubernetes {
				t.Errorf("the bootstrap manifests of %s are those of %v", m.Name(), got)
			}
		}

		w.MustRun("destroy", "-auto-approve")
	})
}
