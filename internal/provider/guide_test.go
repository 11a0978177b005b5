package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// The troubleshooting guide shows messages of the provider. They are recorded here, so that they cannot differ from
// the code; `-update` writes them, and `make generate` puts them into the guide.

// guideFolder has them for the template of the guide.
const guideFolder = "../../examples/guides/troubleshooting"

// guided is one diagnostic of the guide: the first one with its summary.
type guided struct {
	summary string
	kind    string
	say     func(t *testing.T) []*tfprotov6.Diagnostic
}

// inPlan is from a recorded plan.
func inPlan(scenario, kind, summary string) guided {
	scenarios := planScenarios()
	maps.Copy(scenarios, kubernetesScenarios())
	maps.Copy(scenarios, restoreScenarios())
	maps.Copy(scenarios, containerScenarios())

	return guided{summary, kind, func(t *testing.T) []*tfprotov6.Diagnostic {
		t.Helper()

		return scenarios[scenario].diagnostics(t)
	}}
}

// ofConfiguration is about a configuration of a control plane.
func ofConfiguration(summary string, value any, at ...string) guided {
	return guided{summary, "talosop_control_plane", func(t *testing.T) []*tfprotov6.Diagnostic {
		t.Helper()

		return tftest.Validate(t, "talosop_control_plane", tftest.With(tftest.BaseControlPlane(), value, at...))
	}}
}

// ofMachines is about the machines of a site, whose addresses become those of the guide.
func ofMachines(summary string, say func(t *testing.T, s *sitetest.Site, config tftest.Config) []*tfprotov6.Diagnostic) guided {
	return guided{summary, "talosop_control_plane", func(t *testing.T) []*tfprotov6.Diagnostic {
		t.Helper()

		s := sitetest.New(t, 1, 0)
		address := s.ControlPlane[0].Address().String()
		config := tftest.With(tftest.BaseControlPlane(), s.URL, "endpoint")
		config["machines"] = tftest.Config{"cp-1": tftest.Config{"address": address}}
		config["deletion_protection"] = false

		said := say(t, s, config)
		for _, d := range said {
			d.Detail = strings.NewReplacer(address, "10.0.0.11", "127.99.99.99", "10.0.0.99").Replace(d.Detail)
		}

		return said
	}}
}

func guidedDiagnostics() map[string]guided {
	const controlPlane = "talosop_control_plane"

	return map[string]guided{
		"deletion-protection": inPlan("destroy-protected", theClusterKind, "Deletion protection of talosop_cluster prod is enabled"),
		"reboot":              inPlan("config-reboot", theClusterKind, "Machines will reboot"),
		"wipe":                inPlan("scale-down", theClusterKind, "Machines will be wiped"),
		"talos-downgrade":     inPlan("downgrade-refused", theClusterKind, "Unsupported change of talos_version"),
		"kubernetes-for-talos": inPlan("kubernetes-unsupported-refused", theClusterKind,
			"Unsupported change of kubernetes_version"),
		"lost-majority": inPlan("quorum-majority-gone", theClusterKind, "Unsupported removal of machines"),
		"lost-data":     inPlan("restore-lost-unasked-refused", theClusterKind, "The apply will be refused"),
		"not-ready": inPlan("kubernetes-worker-not-ready", theClusterKind,
			"Machines that are not ready hold the upgrade of Kubernetes"),
		"storage": inPlan("container-class-refused", theClusterKind, "Unsupported change of storage"),
		"secrets": ofConfiguration("Invalid secrets", "cluster: {}", "secrets"),
		"address": ofConfiguration(`Invalid machines["cp-1"].address`,
			"https://10.0.0.11:50000", "machines", "cp-1", "address"),
		"incomplete": ofMachines("Incomplete create of control plane",
			func(t *testing.T, s *sitetest.Site, config tftest.Config) []*tfprotov6.Diagnostic {
				t.Helper()
				s.ControlPlane[0].HangNextReboot()

				config["timeouts"] = tftest.Config{"create": hanging}

				return tftest.Drive(t, controlPlane, nil).Apply(t, config).Diagnostics
			}),
		"no-answer": ofMachines("Unable to create control plane",
			func(t *testing.T, _ *sitetest.Site, config tftest.Config) []*tfprotov6.Diagnostic {
				t.Helper()
				tftest.With(config, "127.99.99.99", "machines", "cp-1", "address")

				config["timeouts"] = tftest.Config{"create": "3s"}

				return tftest.Drive(t, controlPlane, nil).Apply(t, config).Diagnostics
			}),
		"other-identity": ofMachines("Unable to create control plane",
			func(t *testing.T, _ *sitetest.Site, config tftest.Config) []*tfprotov6.Diagnostic {
				t.Helper()
				tftest.Drive(t, controlPlane, nil).Apply(t, config).Must(t)

				config["secrets"] = tftest.NewBundle(t)

				return tftest.Drive(t, controlPlane, nil).Apply(t, config).Diagnostics
			}),
		"endpoint": ofMachines("The Kubernetes endpoint does not answer",
			func(t *testing.T, s *sitetest.Site, config tftest.Config) []*tfprotov6.Diagnostic {
				t.Helper()
				tftest.Must(t, s.DropEndpoint(s.URL))

				said := driveOn(t, impatient(), controlPlane).Apply(t, config).Must(t).Diagnostics
				host, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")

				for _, d := range said {
					d.Detail = strings.ReplaceAll(d.Detail, host, "10.0.0.10")
				}

				return said
			}),
		"silent": ofMachines("Machines do not answer",
			func(t *testing.T, s *sitetest.Site, config tftest.Config) []*tfprotov6.Diagnostic {
				t.Helper()

				d := tftest.Drive(t, controlPlane, nil)
				d.Apply(t, config).Must(t)
				s.ControlPlane[0].PowerOff()

				return d.Refresh(t).Diagnostics
			}),
	}
}

// theClusterKind is the kind of resource of most recorded plans.
const theClusterKind = "talosop_cluster"

// The quotes in the troubleshooting guide match the provider.
func TestPlan_asRecordedInTheGuide(t *testing.T) {
	t.Parallel()

	all := guidedDiagnostics()
	if len(all) != 16 {
		t.Errorf("the guide has %d diagnostics", len(all))
	}

	guide, err := os.ReadFile("../../templates/guides/troubleshooting.md.tmpl")
	tftest.Must(t, err)

	for name, g := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if quoted := `"examples/guides/troubleshooting/` + name + `.txt"`; !strings.Contains(string(guide), quoted) {
				t.Errorf("the guide does not quote %s", quoted)
			}

			got, file := g.text(t), filepath.Join(guideFolder, name+".txt")

			if *update {
				tftest.Must(t, os.WriteFile(file, []byte(got), 0o644)) //nolint:gosec // readable by all users

				return
			}

			want, err := os.ReadFile(file)
			tftest.Must(t, err)

			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-recorded +said:\n%s", diff)
			}
		})
	}

	files, err := filepath.Glob(filepath.Join(guideFolder, "*.txt"))
	tftest.Must(t, err)

	for _, file := range files {
		if _, ok := all[strings.TrimSuffix(filepath.Base(file), ".txt")]; !ok {
			t.Errorf("nothing says %s", file)
		}
	}
}

// text is a diagnostic as the CLIs show it.
func (g guided) text(t *testing.T) string {
	t.Helper()

	said := g.say(t)

	for _, d := range said {
		if d.Summary != g.summary {
			continue
		}

		severity := "Warning"
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			severity = "Error"
		}

		at := ""
		if where := attributeIn(d.Attribute); where != "" {
			at = ", at " + where
		}

		return fmt.Sprintf("%s: %s\n\n  with %s.this%s\n\n%s\n", severity, d.Summary, g.kind, at, wrapped(d.Detail, 100))
	}

	t.Fatalf("%q is not said: %s", g.summary, tftest.Show(said))

	return ""
}

// attributeIn is a path in the form that users write.
func attributeIn(at *tftypes.AttributePath) string {
	var text strings.Builder

	for _, step := range at.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			text.WriteString("." + string(step))
		case tftypes.ElementKeyString:
			fmt.Fprintf(&text, "[%q]", string(step))
		case tftypes.ElementKeyInt:
			fmt.Fprintf(&text, "[%d]", int(step))
		}
	}

	return strings.TrimPrefix(text.String(), ".")
}

// wrapped breaks lines between words. It indents continuation lines in a list to the text of the item.
func wrapped(text string, width int) string {
	var lines []string

	for line := range strings.SplitSeq(text, "\n") {
		indent := ""
		if strings.HasPrefix(line, "  - ") {
			indent = "    "
		}

		for len(line) > width {
			end := strings.LastIndex(line[:width+1], " ")
			if end <= len(indent) {
				break
			}

			lines = append(lines, line[:end])
			line = indent + line[end+1:]
		}

		lines = append(lines, line)
	}

	return strings.Join(lines, "\n")
}
