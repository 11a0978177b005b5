package finding_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

func TestReport_beginsWithTheCause(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		report finding.Report
		want   string
	}{
		"one cause": {
			finding.Report{Attempted: "fetch a chart", Cause: []string{"no answer"}, Next: "Check the URL."},
			"Cause: no answer\n\nAttempted: fetch a chart\n\nNext: Check the URL.",
		},
		"several": {
			finding.Report{Cause: []string{"cp-1: no answer", "cp-2: no answer"}, Now: []string{"w-1: running"}},
			"Cause:\n  - cp-1: no answer\n  - cp-2: no answer\n\nState now: w-1: running",
		},
		"with an introduction": {
			finding.Report{Cause: []string{"timed out after 5s, waiting for:", "cp-1: no answer"}},
			"Cause: timed out after 5s, waiting for:\n  - cp-1: no answer",
		},
	} {
		if got := test.report.String(); got != test.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, test.want)
		}
	}
}
