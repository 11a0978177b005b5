package machines_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/image/factory"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/factorytest"
)

const (
	guestAgentContent = "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/qemu-guest-agent\n"
	guestAgentID      = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
)

// A plan names the system extensions that come and go with a schematic: in operations if the configuration has its
// content, and otherwise in a warning with the content from the factory. Without that it shows the ID.
func TestPlan_extensionsByName(t *testing.T) {
	t.Parallel()

	const (
		other = "10000000000000000000000000000000000000000000000000000000000000ff"
		named = "upgrade Talos on cp-1: schematic ce4c980550dd…, extensions: + qemu-guest-agent, - gvisor (reboot)"
		short = "upgrade Talos on cp-1: schematic ce4c980550dd… (reboot)"
	)

	f := factorytest.New(t)

	_, err := factory.Client{Base: f.URL, HTTP: f.Client()}.Upload(t.Context(), guestAgentContent)
	tftest.Must(t, err)

	s := sitetest.NewWith(t, sim.Options{Extensions: map[string][]string{
		other: {"gvisor"}, guestAgentID: {"qemu-guest-agent"}}}, 1, 0)
	base := func() tftest.Config { return planeConfig(s, tftest.Bundle(), s.ControlPlane...) }

	m := tftest.QuickProviderData()
	m.Schematics = factory.NewSchematics(http.DefaultClient, time.Minute)

	d := tftest.DriveWith(t, m, "talosop_control_plane")
	d.Ready(t, tftest.With(base(), other, "schematic"))

	for name, test := range map[string]struct {
		schematic, url, line string
		warns                bool
	}{
		"content":             {guestAgentContent, "http://127.0.0.1:1", named, false},
		"ID":                  {guestAgentID, f.URL, short, true},
		"ID without access":   {guestAgentID, "http://127.0.0.1:1", short, false},
		"ID without look-up":  {guestAgentID, "none", short, false},
		"ID without content":  {strings.Repeat("0", 64), f.URL, "upgrade Talos on cp-1: schematic 000000000000… (reboot)", false},
		"ID of plain Talos":   {noExtensions, "none", "upgrade Talos on cp-1: schematic 376567988ad3…, extensions: - gvisor (reboot)", false},
		"the same by content": {other, f.URL, "", false},
	} {
		d.Server = tftest.ServeWith(t, m, tftest.Config{"factory_url": test.url})
		planned := d.Plan(t, tftest.With(base(), test.schematic, "schematic")).Must(t)

		lines := tftest.TextsOf(t, tftest.AttributeOf(t, planned.Value, "operations"))
		if test.line != "" && !slices.Contains(lines, test.line) {
			t.Errorf("%s: the plan has %q", name, lines)
		}

		shown := tftest.Show(planned.Diagnostics)
		if strings.Contains(shown, "[extensions_change]") != test.warns ||
			test.warns && !strings.Contains(shown, "cp-1: + qemu-guest-agent, - gvisor (schematic ce4c980550dd…)") {
			t.Errorf("%s: the plan says %s", name, shown)
		}
	}
}

// The text of plans that change system extensions is recorded: by content, by ID with a factory, and without one.
func TestAccPlanText_ofSchematics(t *testing.T) {
	t.Parallel()

	f := factorytest.New(t)

	_, err := factory.Client{Base: f.URL, HTTP: f.Client()}.Upload(t.Context(), guestAgentContent)
	tftest.Must(t, err)

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		t.Parallel()

		s := sitetest.New(t, 1, 0)
		config := func(url, schematic string) string {
			return sitetest.ProviderHCL + fmt.Sprintf("provider \"talosop\" { factory_url = %q }\n", url) +
				sitetest.SecretsHCL + s.ControlPlaneHCL(schematic)
		}

		w := sitetest.Applied(t, cli, config(f.URL, ""))

		for _, test := range []struct{ name, url, schematic string }{
			{"schematic-by-content", f.URL, fmt.Sprintf("  schematic = %q\n", guestAgentContent)},
			{"schematic-by-id", f.URL, fmt.Sprintf("  schematic = %q\n", guestAgentID)},
			{"schematic-without-access", "http://127.0.0.1:1", fmt.Sprintf("  schematic = %q\n", guestAgentID)},
		} {
			w.Write("main.tf", config(test.url, test.schematic))

			planned := w.MustRun("plan", "-out=plan")
			recorded(t, filepath.Join("testdata", "plantexts", test.name+".txt"), readable(s, planned.Stdout))

			if test.name == "schematic-by-id" {
				sitetest.Shows(t, planned, "extensions_change")
			}
		}

		w.Write("main.tf", config(f.URL, fmt.Sprintf("  schematic = %q\n", guestAgentID)))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the upgrade")
	})
}
