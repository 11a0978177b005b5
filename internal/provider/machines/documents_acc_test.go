package machines_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Clusters of Talos 1.14, whose configurations have documents in place of fields of the main document.

// on114 is a configuration with Talos 1.14.
func on114(config string) string { return strings.ReplaceAll(config, "v1.13.0", sitetest.Talos114) }

func contractIs(contract string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("version_contract"),
		knownvalue.StringExact(contract))
}

// A new cluster gets the documents and is changed by them. A patch of the old form is refused on the patch.
func TestAccDocuments_ofANewCluster(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.NewWith(t, sim.Options{TalosVersion: sitetest.Talos114}, 3, 2)
		pools := sitetest.TwoPools(s, `install = { disk = "/dev/sda", wipe = true }`)
		pools = strings.Replace(pools, "      install  = { disk = \"/dev/sda\" }\n", "", 1)
		config := func(patch string) string {
			return on114(sitetest.SecretsHCL + s.ClusterHCL(pools, "cluster_config_patches = ["+patch+"]"))
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: config(""), ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs(sitetest.TheCluster, "Ready"), contractIs("v1.14")},
				},
				{
					Config:      config(`yamlencode({ machine = { kubelet = { extraArgs = { v = "4" } } } })`),
					ExpectError: regexp.MustCompile(`(?s)Invalid cluster_config_patches.*Write the document\s+KubeletConfig\s+instead`),
				},
				{
					Config: config(`yamlencode({ apiVersion = "v1alpha1", kind = "KubeNodeConfig", labels = { rack = "b2" } })`),
					ConfigPlanChecks: emptyAfterwards(sitetest.OperationsAre(sitetest.TheCluster, repeated(5,
						`apply configuration to \S+ \(no reboot\): \+ KubeNodeConfig labels\.rack = "b2"`)...)),
				},
				{
					// Images are in the documents, too.
					Config: strings.ReplaceAll(
						config(`yamlencode({ apiVersion = "v1alpha1", kind = "KubeNodeConfig", labels = { rack = "b2" } })`),
						"v1.36.2", "v1.36.3"),
					ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{
						sitetest.PhaseIs(sitetest.TheCluster, "Ready"),
						statecheck.ExpectKnownValue(sitetest.TheCluster,
							tfjsonpath.New("observed_kubernetes_versions").AtMapKey("cp-1"),
							knownvalue.StringExact("v1.36.3")),
					},
				},
				{
					// A change that only a boot applies reboots the machine.
					Config: strings.ReplaceAll(
						config(`yamlencode({ apiVersion = "v1alpha1", kind = "SecurityProfileConfig", workloadIsolation = false })`),
						"v1.36.2", "v1.36.3"),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{plancheck.ExpectKnownValue(sitetest.TheCluster,
							tfjsonpath.New("impact").AtMapKey("rebooted"), knownvalue.SetSizeExact(5))},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
				},
			},
		})

		s.ExpectReset(t)
	})
}

func repeated(n int, text string) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text
	}

	return texts
}

// A cluster that started with the documents is imported, and then the plan is empty.
func TestAccDocuments_planAfterImportIsEmpty(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccDocuments_ofANewCluster", "TestAccWholeCluster_planAfterImportIsEmpty")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.NewWith(t, sim.Options{TalosVersion: sitetest.Talos114}, 1, 2)
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+on114(sitetest.SecretsHCL+withSystem(s.ClusterHCL(sitetest.TwoPools(s,
			"workload_isolation = false"), ""),
			systemHCL)))

		// The configuration of a control plane has all secrets.
		w.Write("secrets.yaml", string(s.ControlPlane[0].Config()))

		sitetest.ExpectImportsUnchanged(t, s, w)
		w.MustRun("destroy", "-auto-approve")
	})
}

// A cluster of Talos 1.13 is upgraded to 1.14 and keeps its contract. When its configuration says so, it moves to
// the documents and back, with a plan that names the changes.
func TestAccDocuments_movedOnPurpose(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestAccDocuments_ofANewCluster", "TestDocuments_onOlderTalos", "TestDocuments_withoutAReboot")

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 1)
		config := func(extra string) string {
			return sitetest.SecretsHCL + s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, ""), extra+settledInTime)
		}
		moved := fmt.Sprintf("version_contract = %q\n", "v1.14")

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: config(""), ConfigStateChecks: []statecheck.StateCheck{contractIs("v1.13")}},
				{
					Config:      on114(config(moved)),
					ExpectError: sitetest.Shown(t, "contract_too_new"),
				},
				{
					Config: on114(config("")), ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs(sitetest.TheCluster, "Ready"), contractIs("v1.13")},
				},
				{
					Config: on114(config(moved)),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("operations"), knownvalue.ListPartial(
								map[int]knownvalue.Check{1: knownvalue.StringRegexp(regexp.MustCompile("apply configuration to cp-"))})),
							plancheck.ExpectKnownValue(sitetest.TheCluster, tfjsonpath.New("impact").AtMapKey("rebooted"),
								knownvalue.SetSizeExact(4)),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs(sitetest.TheCluster, "Ready"), contractIs("v1.14")},
				},
				{
					// The contract stays as set.
					Config: on114(config("")), ConfigPlanChecks: emptyAfterwards(plancheck.ExpectEmptyPlan()),
				},
				{
					Config: on114(config("version_contract = \"v1.13\"\n")), ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs(sitetest.TheCluster, "Ready"), contractIs("v1.13")},
				},
			},
		})

		s.ExpectReset(t)
	})
}
