package machineset

import (
	"reflect"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Differences on a host cluster are distinguished by what an apply does about them.
func TestHostDrift_kinds(t *testing.T) {
	t.Parallel()

	d := HostDrift{Repairs: []string{"Service p/dev does not exist"}, VolumesLost: true,
		Replace: "StatefulSet p/dev-cp-0: spec.template.spec was added", Stays: []string{"it has 30Gi"}}

	want := record.Drift{{Kind: record.HostDiffers, Found: d.Repairs[0]}, {Kind: record.HostVolumesLost},
		{Kind: record.HostReplaces, Found: d.Replace}, {Kind: record.HostStays, Found: d.Stays[0]}}
	if got := d.Drift(); !reflect.DeepEqual(got, want) {
		t.Errorf("drift is %+v", got)
	}

	if got := (HostDrift{}).Drift(); got != nil {
		t.Errorf("drift of nothing is %+v", got)
	}
}
