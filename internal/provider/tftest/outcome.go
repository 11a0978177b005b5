package tftest

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Outcome is the answer of a provider.
type Outcome struct {
	Value       tftypes.Value
	Private     []byte
	Diagnostics []*tfprotov6.Diagnostic
}

// Failed reports whether the provider returned an error.
func (o Outcome) Failed() bool {
	return slices.ContainsFunc(o.Diagnostics,
		func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError })
}

// Must ends the test after an error.
func (o Outcome) Must(t *testing.T) Outcome {
	t.Helper()

	if o.Failed() {
		t.Fatal(Show(o.Diagnostics))
	}

	return o
}

// Tells checks that the diagnostics contain words.
func (o Outcome) Tells(t *testing.T, words ...string) {
	t.Helper()

	for _, w := range words {
		if shown := Show(o.Diagnostics); !strings.Contains(shown, w) {
			t.Errorf("it does not say %q:\n%s", w, shown)
		}
	}
}
