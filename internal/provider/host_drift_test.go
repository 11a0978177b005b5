package provider

import (
	"reflect"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// What a refresh records of a host cluster is what a plan reads, whatever other drift is beside it.
func TestHostDrift_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()

	for name, d := range map[string]machineset.HostDrift{
		"nothing": {},
		"repairs": {Repairs: []string{"Service p/dev does not exist", "Service p/dev-cp-0 is being deleted"}},
		"replaced": {Repairs: []string{"Service p/dev does not exist"},
			Replace: "StatefulSet p/dev-cp-0: spec.template.spec was added"},
		"lost":  {Repairs: []string{"Service p/dev does not exist"}, VolumesLost: true, Stays: []string{"it was deleted"}},
		"stays": {Stays: []string{"it has 30Gi"}},
	} {
		lines := slices.Concat([]string{machineset.DriftMember}, d.Lines(), []string{machineset.DriftNode})

		got := machineset.RecordedHostDrift(lines, d.Replace != "")
		if len(got.Repairs) == 0 {
			got.Repairs = nil
		}

		if !reflect.DeepEqual(got, d) {
			t.Errorf("%s: %q is read as %+v", name, lines, got)
		}
	}
}
