package machineset

import (
	"cmp"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// Every last decision of a forecast is reported.
func TestObstructions_areReported(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		last cluster.Decision
		want string
		and  string // the finding before says
		// severity is a warning unless it is set.
		severity finding.Severity
	}{
		"done": {},
		"held": {last: cluster.Decision{Holds: []step.Hold{{Machine: "cp-2", Reason: "is locked"}}},
			want: "cp-2: is locked"},
		"refused": {last: cluster.Decision{Refusals: []step.Refusal{{Machine: "cp-2", Reason: "is locked"}}},
			want: "is locked", severity: finding.Error},
		"refused after a wait": {last: cluster.Decision{Holds: []step.Hold{{Machine: "cp-2", Reason: "is locked"}},
			Refusals: []step.Refusal{{Machine: "cp-2", Reason: "is another machine"}}}, want: "is locked", and: "is another machine"},
		"refused on two": {last: cluster.Decision{Refusals: []step.Refusal{
			{Machine: "cp-2", Reason: "does not fit", Remedy: "Wait"}, {Machine: "cp-3", Reason: "does not fit", Remedy: "Wait"}}},
			want: "Machines cp-2 and cp-3: does not fit", severity: finding.Error},
		"endless": {last: cluster.Decision{Steps: []step.Step{step.Uncordon{Machine: "w-1"}}},
			want: "does not end"},
	} {
		diags := obstructions(Set{}, Set{}, Record{}, test.last, cluster.DefaultPolicy())

		if test.and != "" && len(diags) == 2 && diags[0].Severity == finding.Warning && strings.Contains(diags[0].Detail, test.and) {
			diags = diags[1:]
		}

		severity := cmp.Or(test.severity, finding.Warning)

		switch {
		case test.want == "" && len(diags) > 0, test.want != "" && len(diags) != 1:
			t.Errorf("%s: %v", name, diags)
		case test.want != "" && (diags[0].Severity != severity || !strings.Contains(diags[0].Detail, test.want)):
			t.Errorf("%s: %s %s", name, diags[0].Severity, diags[0].Detail)
		}
	}
}
