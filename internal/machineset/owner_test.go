package machineset

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Drift reports a mark of another resource, and a mark that only claims to be one. A mark of this resource without a
// proof counts as missing.
func TestDriftOf_ownerMarks(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 100)
	forged := func(named string) record.Drift { return record.Drift{{Kind: record.MarkUnproven, Found: named}} }

	for name, test := range map[string]struct {
		owners, unproven map[string]string
		want             record.Drift
	}{
		"none":                   {},
		"of this resource":       {owners: map[string]string{"w-1": "mine"}},
		"of another":             {owners: map[string]string{"w-1": "another"}, want: record.Drift{{Kind: record.OwnedByAnother}}},
		"forged":                 {unproven: map[string]string{"w-1": "another"}, want: forged("another")},
		"forged, and long":       {unproven: map[string]string{"w-1": long}, want: forged(long[:40])},
		"this one without proof": {unproven: map[string]string{"w-1": "mine"}},
	} {
		want, have := withoutDrift()
		want.Owner = "mine"
		have.Kubernetes.Owners, have.Kubernetes.Unproven = test.owners, test.unproven

		m := want.Machines[slices.IndexFunc(want.Machines, func(m cluster.Machine) bool { return m.Name == "w-1" })]
		if got := driftOfOwner(m, want, have); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// A machine of another resource is only forgotten, and impact does not count that as a removal.
func TestImpactOf_machinesOfOthers(t *testing.T) {
	t.Parallel()

	removed := []cluster.Machine{{Name: "w-1"}, {Name: "w-2", Remembered: cluster.Remembered{OwnedByOther: true}}}
	if got := ImpactOf(nil, removed).Removed; !slices.Equal(got, []string{"w-1"}) {
		t.Errorf("removed %v, want w-1", got)
	}
}
