package machineinfo_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
)

// The data source tells the same machine in maintenance mode and as a member.
func TestAccMachineInfo_inMaintenanceAndAsMember(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 0)
		m := s.ControlPlane[0]
		info := func(name string) tfjsonpath.Path { return tfjsonpath.New(name) }

		waiting := `
data "talosop_machine_info" "this" {
  address = "` + m.Address().String() + `"
}
`
		joined := sitetest.SecretsHCL + s.ControlPlaneHCL("") + `
data "talosop_machine_info" "this" {
  address = "` + m.Address().String() + `"
  cluster = talosop_control_plane.this.cluster
}
`

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: waiting,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("maintenance"), knownvalue.Bool(true)),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("uuid"), knownvalue.StringExact(m.UUID())),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("talos_version"),
							knownvalue.StringExact("v1.13.0")),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("certificate_fingerprint"),
							knownvalue.NotNull()),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("disks").AtSliceIndex(0).AtMapKey("path"),
							knownvalue.StringExact("/dev/sda")),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("addresses"),
							knownvalue.ListPartial(map[int]knownvalue.Check{0: knownvalue.StringExact(m.Address().String())})),
					},
				},
				{Config: waiting + `
data "talosop_machine_info" "pinned" {
  address     = "` + m.Address().String() + `"
  fingerprint = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
}`, ExpectError: sitetest.Message("Unable to read machine")},
				{
					Config: joined,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("maintenance"), knownvalue.Bool(false)),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("stage"), knownvalue.StringExact("running")),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("uuid"), knownvalue.StringExact(m.UUID())),
					},
				},
				{Config: sitetest.SecretsHCL + s.ControlPlaneHCL("") + waiting,
					ExpectError: sitetest.Message("Unable to read machine")},
			},
		})
	})
}
