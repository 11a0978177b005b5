package machineset

import (
	"reflect"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// What a refresh records of a host cluster is what a plan reads, whatever other drift is beside it.
func TestHostDrift_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()

	for name, d := range map[string]HostDrift{
		"nothing": {},
		"repairs": {Repairs: []string{"Service p/dev does not exist", "Service p/dev-cp-0 is being deleted"}},
		"replaced": {Repairs: []string{"Service p/dev does not exist"},
			Replace: "StatefulSet p/dev-cp-0: spec.template.spec was added"},
		"lost":  {Repairs: []string{"Service p/dev does not exist"}, VolumesLost: true, Stays: []string{"it was deleted"}},
		"stays": {Stays: []string{"it has 30Gi"}},
	} {
		drift := slices.Concat(Drift{{Kind: NoMember}}, d.Drift(), Drift{{Kind: NoNode}})

		got := ReadDrift(drift.Lines()).OnHost(d.Replace != "")
		if len(got.Repairs) == 0 {
			got.Repairs = nil
		}

		if !reflect.DeepEqual(got, d) {
			t.Errorf("%s: %q is read as %+v", name, drift.Lines(), got)
		}
	}
}

// Every kind of difference is read from state as it was written, whatever stands in it.
func TestReadDrift_isWhatWasWritten(t *testing.T) {
	t.Parallel()

	place := fieldpath.Place{Document: "v1alpha1", Path: fieldpath.Path{"machine", "sysctls", "a.b: c"}}
	drift := Drift{
		{Text: "Talos: v1.13.0 runs, not v1.13.1"},
		{Kind: ConfigurationDiffers, Place: &place},
		{Kind: ConfigurationDiffers, Text: "of a later build"},
		{Kind: ImageDiffers, Component: kubenames.KubeAPIServer, Text: "registry:5000/a: b, not c"},
		{Kind: MetaDiffers, Keys: []uint8{0x0a, 0x0d}},
		{Kind: Wiped}, {Kind: Unproven}, {Kind: NoMember}, {Kind: LeftEtcd}, {Kind: NoNode}, {Kind: NotOnHost},
		{Kind: EtcdGoesBack, Text: "3.6"},
		{Kind: OwnedByAnother}, {Kind: MarkUnproven, Text: `"another"`}, {Kind: OthersWork},
		{Kind: HostDiffers, Text: "Service p/dev does not exist"}, {Kind: HostVolumesLost},
		{Kind: HostStays, Text: "it has 30Gi: left"},
	}

	if got := ReadDrift(drift.Lines()); !reflect.DeepEqual(got, drift) {
		t.Errorf("%q is read as %+v", drift.Lines(), got)
	}

	for kind := DiffersOtherwise; kind <= HostStays; kind++ {
		if !drift.Has(kind) {
			t.Errorf("kind %d is not tried", kind)
		}
	}
}
