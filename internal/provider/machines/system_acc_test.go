package machines_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// systemHCL are the system settings of control planes.
const systemHCL = `
    system_volumes = {
      STATE     = { encryption_keys = { 0 = { tpm = {} }, 1 = { passphrase = "open sesame" } } }
      EPHEMERAL = { max_size = "80%", encryption_keys = { 0 = { node_id = true } } }
      ETCD      = { min_size = "10GiB", disk_selector = "disk.transport == \"nvme\"" }
    }
    image_verification = [
      { image = "registry.k8s.io/*", issuer = "https://accounts.google.com", subject = "krel@test" },
      { image = "*", skip = true },
    ]
`

// withSystem is a configuration with more settings for control planes.
func withSystem(config, settings string) string {
	return strings.Replace(config, "  control_plane = {\n", "  control_plane = {\n"+settings, 1)
}

// The system settings of machines apply from the start, and change as far as Talos can. A change that a disk with
// data does not allow is refused on the argument.
func TestAccSystem_isMadeAndChanged(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.NewWith(t, sim.Options{TalosVersion: sitetest.Talos114}, 1, 1)
		config := func(settings, pool string) string {
			return on114(sitetest.SecretsHCL + withSystem(s.ClusterHCL(sitetest.PoolHCL("batch", s.Workers, pool), ""),
				settings))
		}
		without := func(line string) string {
			return regexp.MustCompile(`(?m)^ *`+line+`.*\n`).ReplaceAllString(systemHCL, "")
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{
					Config: config(systemHCL, ""), ConfigPlanChecks: emptyAfterwards(),
					ConfigStateChecks: []statecheck.StateCheck{sitetest.PhaseIs(sitetest.TheCluster, "Ready")},
				},
				{
					Config:      config(without("ETCD "), ""),
					ExpectError: sitetest.Shown(t, "volume_change"),
				},
				{
					Config:      config(strings.Replace(systemHCL, "node_id = true", `passphrase = "open says me"`, 1), ""),
					ExpectError: sitetest.Message("all of its encryption keys would change"),
				},
				{
					Config: strings.ReplaceAll(config(systemHCL, ""), sitetest.Talos114, "v1.13.0"),
					ExpectError: regexp.MustCompile(
						`(?s)Invalid\s+\S*system_volumes.*with\s+talos_version\s+v1\.13.*Talos\s+v1\.14\s+and\s+newer`),
				},
				{
					// One key stays and the other changes at the next boot; rules take effect at once.
					Config: config(strings.Replace(without("{ image = \"\\*\""), "open sesame", "close sesame", 1),
						"image_verification = [{ image = \"evil.test/*\", deny = true }]"),
					ConfigPlanChecks: emptyAfterwards(sitetest.OperationsAre(sitetest.TheCluster,
						`apply configuration to cp-1 \(drain, wait for volumes, reboot for VolumeConfig/STATE\): .*keys\[1\]\.static\.passphrase`,
						`apply configuration to batch/w-1 \(no reboot\): .*ImageVerificationConfig.*`)),
				},
			},
		})

		s.ExpectReset(t)
	})
}
