package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// Terraform lists the machines of a network, and generates configuration for them: its first plan imports it and
// changes nothing. None of it contains secrets.
func TestAccQuery_listsAndWritesDown(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 1)
	s.MadeElsewhere(t, "machine: {sysctls: {net.core.somaxconn: \"1024\"}}")
	member, waiting := s.ControlPlane[0], s.Workers[0]

	w := clitest.NewWorkspace(t, clitest.Newest(t))
	w.Write("main.tf", sitetest.ProviderHCL+`
provider "talosop" {
  clusters = { test = { secrets = file("secrets.yaml") } }
}
`)
	w.Write("secrets.yaml", tftest.Bundle())
	w.Write("site.tfquery.hcl", fmt.Sprintf(`
list "talosop_machine" "site" {
  provider = talosop

  config {
    networks        = [%q]
    connect_timeout = "10s"
  }
}
`, rack(s)))
	w.Init()

	output := w.MustRun("query", "-generate-config-out=all.tf").Output()
	for _, m := range []string{
		fmt.Sprintf("%s: control plane of test, running, Talos v1.13.0, cp-1", member.Address()),
		fmt.Sprintf("%s: maintenance, Talos v1.13.0", waiting.Address()),
	} {
		if !strings.Contains(output, m) {
			t.Errorf("%q is not listed:\n%s", m, output)
		}
	}

	// The configuration of a waiting machine has everything it reports, for users who remove its import.
	if all := w.Read("all.tf"); !strings.Contains(all, `"`+waiting.UUID()+`"`) || strings.Count(all, "import {") != 2 {
		t.Errorf("the configuration of both is:\n%s", all)
	}

	tftest.Must(t, os.Remove(filepath.Join(w.Dir, "all.tf")))

	w.Write("site.tfquery.hcl", strings.Replace(w.Read("site.tfquery.hcl"), "connect_timeout", "maintenance     = false\n"+
		"    connect_timeout", 1))
	s.ForgetCalls()

	output += w.MustRun("query", "-generate-config-out=generated.tf").Output()

	plan := w.MustRun("plan").Stdout
	if !strings.Contains(plan, "1 to import, 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("the plan of what was written is:\n%s\nwith:\n%s", plan, w.Read("generated.tf"))
	}

	s.ExpectNothingSent(t)
	sitetest.HoldsNone(t, tftest.Bundle(), map[string]string{"output": output + plan,
		"configuration": w.Read("generated.tf")})
}
