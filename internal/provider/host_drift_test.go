package provider

import (
	"reflect"
	"slices"
	"testing"
)

// What a refresh records of a host cluster is what a plan reads, whatever other drift is beside it.
func TestHostDrift_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()

	for name, d := range map[string]hostDrift{
		"nothing":  {},
		"repairs":  {repairs: []string{"Service p/dev does not exist", "Service p/dev-cp-0 is being deleted"}},
		"replaced": {repairs: []string{"Service p/dev does not exist"}, replace: "StatefulSet p/dev-cp-0: spec.template.spec was added"},
		"lost":     {repairs: []string{"Service p/dev does not exist"}, volumesLost: true, stays: []string{"it was deleted"}},
		"stays":    {stays: []string{"it has 30Gi"}},
	} {
		lines := slices.Concat([]string{driftMember}, d.lines(), []string{driftNode})

		got := recordedHostDrift(lines, d.replace != "")
		if len(got.repairs) == 0 {
			got.repairs = nil
		}

		if !reflect.DeepEqual(got, d) {
			t.Errorf("%s: %q is read as %+v", name, lines, got)
		}
	}
}
