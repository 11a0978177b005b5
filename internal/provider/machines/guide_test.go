package machines_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// The troubleshooting guide shows messages of the provider: what a CLI prints after twelve mistakes
// (mistakes_acc_test.go), and the diagnostics below. They are recorded, so that they cannot differ from the code;
// `-update` writes them, and `make generate` puts them into the guide.

// guideFolder has them for the template of the guide.
const guideFolder = "../../../examples/guides/troubleshooting"

// guided is one diagnostic of the guide: the first one with its code, or its summary.
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

// invalidSecrets is the error about a value that is no secrets bundle.
func invalidSecrets(t *testing.T) []*tfprotov6.Diagnostic {
	t.Helper()

	return tftest.Validate(t, theControlPlaneKind, tftest.With(tftest.BaseControlPlane(), "cluster: {}", "secrets"))
}

// incompleteCreate is the warning about a create whose machine hangs in its reboot.
func incompleteCreate(t *testing.T) []*tfprotov6.Diagnostic {
	t.Helper()

	s := sitetest.New(t, 1, 0)
	s.ControlPlane[0].HangNextReboot()

	address := s.ControlPlane[0].Address().String()
	config := tftest.With(tftest.BaseControlPlane(), s.URL, "endpoint")
	config["machines"] = tftest.Config{"cp-1": tftest.Config{"address": address}}
	config["timeouts"] = tftest.Config{"create": sitetest.Hanging}

	diagnostics := tftest.Drive(t, theControlPlaneKind, nil).Apply(t, config).Diagnostics
	for _, d := range diagnostics {
		d.Detail = strings.ReplaceAll(d.Detail, address, "10.0.0.11")
	}

	return diagnostics
}

func guidedDiagnostics() map[string]guided {
	return map[string]guided{
		"talos-downgrade": inPlan("downgrade-refused", theClusterKind, "talos_downgrade"),
		"kubernetes-for-talos": inPlan("kubernetes-unsupported-refused", theClusterKind,
			"kubernetes_change"),
		"lost-majority": inPlan("quorum-majority-gone", theClusterKind, "etcd_majority_lost"),
		"lost-data":     inPlan("restore-lost-unasked-refused", theClusterKind, "refused_already"),
		"not-ready": inPlan("kubernetes-worker-not-ready", theClusterKind,
			"kubernetes_awaits_machines"),
		"storage":    inPlan("container-class-refused", theClusterKind, "storage_class_change"),
		"secrets":    {"Invalid secrets", theControlPlaneKind, invalidSecrets},
		"incomplete": {"Incomplete create of control plane of cluster prod", theControlPlaneKind, incompleteCreate},
	}
}

// Kinds of resources.
const (
	theClusterKind      = "talosop_cluster" // that of most recorded plans
	theControlPlaneKind = "talosop_control_plane"
)

// The quotes in the troubleshooting guide match the provider.
func TestPlan_asRecordedInTheGuide(t *testing.T) {
	t.Parallel()

	all := guidedDiagnostics()
	if len(all) != 8 {
		t.Errorf("the guide has %d diagnostics", len(all))
	}

	guide, err := os.ReadFile("../../../templates/guides/troubleshooting.md.tmpl")
	tftest.Must(t, err)

	for _, name := range slices.Concat(mistakes, slices.Collect(maps.Keys(all))) {
		if quoted := `"examples/guides/troubleshooting/` + name + `.txt"`; !strings.Contains(string(guide), quoted) {
			t.Errorf("the guide does not quote %s", quoted)
		}
	}

	for name, g := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

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
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if _, ok := all[name]; !ok && !slices.Contains(mistakes, name) {
			t.Errorf("no test records %s", file)
		}
	}
}

// text is a diagnostic as the CLIs show it.
func (g guided) text(t *testing.T) string {
	t.Helper()

	diagnostics := g.say(t)

	for _, d := range diagnostics {
		if code, _ := tftest.Code(d); d.Summary != g.summary && code != g.summary {
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

	t.Fatalf("%q is not said: %s", g.summary, tftest.Show(diagnostics))

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
		indent, item := "", strings.HasPrefix(line, "  - ")
		if item {
			indent = "    "
		}

		for len(line) > width && (item || !strings.HasPrefix(line, " ")) {
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
