package talosversion

import (
	"testing"
)

func TestOf_byTheMinorVersion(t *testing.T) {
	for version, want := range map[string]uint64{
		"v1.10.0": 10, "1.12.3": 12, "v1.13.6": 13, "v1.14.0-alpha.1": 14, "v1.14.1": 14, "v1.19.0": 14, "v2.0.0": 14,
		"v1.9.5": 10, "": 10, "nonsense": 10,
	} {
		if got := Of(version); got.Minor != want {
			t.Errorf("%q is taken for %s, want v1.%d", version, got, want)
		}
	}
}

// A minor version once gained nothing that a later one lost, so that "newer than all that are known" has a meaning.
func TestReleases_areInOrder(t *testing.T) {
	known := Known()

	for i, r := range known[1:] {
		before := known[i]
		if r.Minor != before.Minor+1 || r.EtcdMinor < before.EtcdMinor {
			t.Errorf("%+v after %+v", r, before)
		}

		for name, lost := range map[string]bool{
			"stepwise": before.Stepwise && !r.Stepwise, "never reboots": before.NeverReboots && !r.NeverReboots,
			"own volumes": before.OwnVolumes && !r.OwnVolumes, "pulls once": before.PullsOnce && !r.PullsOnce,
			"installs unattended": before.InstallsUnattended && !r.InstallsUnattended,
		} {
			if lost {
				t.Errorf("%s lost %q", r, name)
			}
		}
	}
}
