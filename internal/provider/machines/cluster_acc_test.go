package machines_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// The main path: machines in maintenance mode become a Ready cluster, a second plan is empty, and a destroy returns
// all of them to maintenance mode.
func TestAccCluster_createAndDestroy(t *testing.T) {
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: s.WholeCluster(),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							plancheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("operations"),
								knownvalue.ListSizeExact(4)),
							plancheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("operations"), knownvalue.ListSizeExact(2)),
							plancheck.ExpectUnknownValue("talosop_control_plane.this", tfjsonpath.New("phase")),
							plancheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("version_contract"),
								knownvalue.StringExact("v1.13")),
						},
						PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("phase"),
							knownvalue.StringExact("Ready")),
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("phase"), knownvalue.StringExact("Ready")),
						statecheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("observed").AtMapKey("cp-2"),
							knownvalue.ObjectPartial(map[string]knownvalue.Check{
								"stage": knownvalue.StringExact("running"), "ready": knownvalue.Bool(true),
								"uuid":      knownvalue.StringExact(s.ControlPlane[1].UUID()),
								"node_name": knownvalue.NotNull(),
							})),
						statecheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("observed_talos_versions").AtMapKey("cp-2"),
							knownvalue.StringExact("v1.13.0")),
						statecheck.ExpectKnownValue("talosop_control_plane.this",
							tfjsonpath.New("observed_kubernetes_versions").AtMapKey("cp-2"), knownvalue.StringExact("v1.36.2")),
						sitetest.Remembers("talosop_control_plane.this", "cp-2", func(m record.Machine) bool {
							return m.BootID != "" && m.ConfigDigest != "" && m.MemberID != ""
						}),
						statecheck.ExpectSensitiveValue("talosop_control_plane.this", tfjsonpath.New("record")),
						statecheck.ExpectKnownValue("talosop_worker.this", tfjsonpath.New("observed").AtMapKey("w-1"),
							knownvalue.ObjectPartial(map[string]knownvalue.Check{
								"stage": knownvalue.StringExact("running"), "node_name": knownvalue.NotNull(),
							})),
						sitetest.Remembers("talosop_worker.this", "w-1", func(m record.Machine) bool { return m.MemberID == "" }),
						statecheck.ExpectSensitiveValue("talosop_control_plane.this", tfjsonpath.New("cluster").AtMapKey("secrets")),
						statecheck.ExpectKnownValue("talosop_control_plane.this", tfjsonpath.New("cluster").AtMapKey("phase"),
							knownvalue.StringExact("Ready")),
					},
				},
			},
		})

		for _, m := range s.Machines() {
			if m.Configured() || m.Stage() != sim.StageMaintenance {
				t.Errorf("after destroy %s is %s", m.Name(), m.Stage())
			}
		}

		if got := len(s.CallsTo("Bootstrap")); got != 1 {
			t.Errorf("etcd was bootstrapped %d times", got)
		}
	})
}
