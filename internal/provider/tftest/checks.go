package tftest

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// ReadFile is the content of a file.
func ReadFile(t *testing.T, path string) string {
	t.Helper()

	content, err := os.ReadFile(path)
	Must(t, err)

	return string(content)
}

// WriteFile writes a file that only its owner reads.
func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	Must(t, os.WriteFile(path, []byte(content), 0o600))
}

// Must ends the test at an error.
func Must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// JSON is a value as JSON.
func JSON(t *testing.T, v any) string {
	t.Helper()

	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// Show renders diagnostics for messages of tests. The code of a message stands in brackets: [deletion_protection].
func Show(diagnostics []*tfprotov6.Diagnostic) string {
	out := ""

	for _, d := range diagnostics {
		code, _ := Code(d)
		if code != "" {
			code = " [" + code + "]"
		}

		at := d.Attribute.String()
		if at != "" {
			at = " at " + at
		}

		out += fmt.Sprintf("%s%s %s%s: %s\n", d.Severity, code, d.Summary, at, d.Detail)
	}

	return out
}

// FilesIn are the files of an archive.
func FilesIn(t *testing.T, path string) map[string]string {
	t.Helper()

	read, err := zip.OpenReader(path)
	Must(t, err)

	defer func() { Must(t, read.Close()) }()

	files := map[string]string{}

	for _, f := range read.File {
		content, err := f.Open()
		Must(t, err)

		text, err := io.ReadAll(content)
		Must(t, err)

		files[f.Name] = string(text)
	}

	return files
}

// EveryUnknown calls try with a configuration for each value, in which that value is unknown, and counts them.
func EveryUnknown(t *testing.T, full tftypes.Value, try func(at *tftypes.AttributePath, v tftypes.Value)) int {
	t.Helper()

	var paths []*tftypes.AttributePath

	err := tftypes.Walk(full, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		// Elements of nested maps and lists that are unknown as a whole are left out:
		// terraform-plugin-framework 1.19 then misses the required attributes in them.
		if len(at.Steps()) > 0 && !v.IsNull() && !(isElement(at) && v.Type().Is(tftypes.Object{})) {
			paths = append(paths, at)
		}

		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range paths {
		changed, err := tftypes.Transform(full, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if at.Equal(path) {
				return tftypes.NewValue(v.Type(), tftypes.UnknownValue), nil
			}

			return v, nil
		})
		if err != nil {
			t.Fatal(err)
		}

		try(path, changed)
	}

	return len(paths)
}

func isElement(at *tftypes.AttributePath) bool {
	_, isAttribute := at.LastStep().(tftypes.AttributeName)

	return !isAttribute
}

// StillUnknown checks that a plan keeps the unknown values of the configuration.
func StillUnknown(t *testing.T, kind string, plan tftypes.Value, at *tftypes.AttributePath) {
	t.Helper()

	got, _, err := tftypes.WalkAttributePath(plan, at)
	if err != nil {
		return // an element of a value that became unknown as a whole
	}

	if v, ok := got.(tftypes.Value); ok && v.IsFullyKnown() {
		t.Errorf("plan %s makes %s known", kind, at)
	}
}

// KeepsItsWord checks that the plan at apply time, with the value known, agrees with the plan while it was unknown.
// The CLIs refuse anything else.
func KeepsItsWord(t *testing.T, kind string, unknown *tftypes.AttributePath, early, final tftypes.Value) {
	t.Helper()

	err := tftypes.Walk(early, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		if !v.IsKnown() || !v.IsFullyKnown() {
			return v.IsKnown(), nil
		}

		got, _, err := tftypes.WalkAttributePath(final, at)
		if then, ok := got.(tftypes.Value); err != nil || !ok || !then.Equal(v) {
			t.Errorf("plan %s with unknown %s says %s = %s, and at apply %s (%v)", kind, unknown, at, v, got, err)
		}

		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ExpectMistake checks that an error, or a warning, at a path contains texts, and that none quotes the secrets.
func ExpectMistake(t *testing.T, diagnostics []*tfprotov6.Diagnostic, at string, says []string, warning bool) {
	t.Helper()

	severity := tfprotov6.DiagnosticSeverityError
	if warning {
		severity = tfprotov6.DiagnosticSeverityWarning
	}

	for _, d := range diagnostics {
		if strings.Contains(Bundle(), strings.TrimSpace(d.Detail)) {
			t.Errorf("a diagnostic quotes the secrets: %s", d.Detail)
		}

		if d.Severity != severity || d.Attribute.String() != at {
			continue
		}

		for _, text := range says {
			if code, _ := Code(d); !strings.Contains("["+code+"] "+d.Summary+" "+d.Detail, text) {
				t.Errorf("the message does not say %q: %s", text, Show(diagnostics))
			}
		}

		return
	}

	t.Errorf("nothing is reported at %s, but\n%s", at, Show(diagnostics))
}
