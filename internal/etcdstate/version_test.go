package etcdstate_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

func TestTakes_byTheVersionsOfAllMembers(t *testing.T) {
	t.Parallel()

	seven, lowered := etcdstate.Versions{Server: "3.7", Data: "3.7"}, etcdstate.Versions{Server: "3.7", Data: "3.6"}
	downgrading, loweredDowngrading := seven, lowered
	downgrading.GoesBack, loweredDowngrading.GoesBack = true, true
	six := etcdstate.Versions{Server: "3.6", Data: "3.6"}
	old := etcdstate.Versions{Server: "3.5"} // does not report the version of its data

	for name, test := range map[string]struct {
		members []etcdstate.Versions
		version string
		why     string
		tell    bool
	}{
		"not requested yet":       {[]etcdstate.Versions{seven, seven}, "3.6", "the etcd data has version 3.7", true},
		"requested":               {[]etcdstate.Versions{downgrading, seven}, "3.6", "the etcd data still has version 3.7, and its downgrade to 3.6 is in progress", false},
		"one is not through":      {[]etcdstate.Versions{loweredDowngrading, downgrading}, "3.6", "the etcd data still has version 3.7, and its downgrade to 3.6 is in progress", false},
		"went back":               {[]etcdstate.Versions{loweredDowngrading, loweredDowngrading}, "3.6", "", false},
		"some are replaced":       {[]etcdstate.Versions{six, loweredDowngrading}, "3.6", "", false},
		"canceled, and held":      {[]etcdstate.Versions{six, lowered}, "3.6", "", false},
		"in an upgrade":           {[]etcdstate.Versions{six, lowered, lowered}, "3.6", "", false},
		"an upgrade just through": {[]etcdstate.Versions{lowered, lowered}, "3.6", "all members run etcd 3.7, which is about to upgrade data of version 3.6", false},
		"two versions at once": {[]etcdstate.Versions{seven}, "3.5",
			"the etcd data has version 3.7; a downgrade needs all members on that version, and goes one version at a time", false},
		"not to 3.5": {[]etcdstate.Versions{six, six}, "3.5",
			"the etcd data has version 3.6; a downgrade needs all members on that version, and goes one version at a time", false},
		"no way back": {[]etcdstate.Versions{old}, "3.5", "", false},
		"data of a newer version": {[]etcdstate.Versions{{Server: "3.7", Data: "3.8"}}, "3.6",
			"the etcd data has version 3.8; a downgrade needs all members on that version, and goes one version at a time", false},
		"one is silent":  {[]etcdstate.Versions{seven, {}}, "3.6", "not every member reports its etcd version", false},
		"none was asked": {nil, "3.6", "not every member reports its etcd version", false},
	} {
		why, tell := etcdstate.AllOf(test.members).Takes(test.version)
		if why != test.why || tell != test.tell {
			t.Errorf("%s: %q, tell %t; want %q, %t", name, why, tell, test.why, test.tell)
		}
	}
}

func TestOfTalos_andMinorOf(t *testing.T) {
	t.Parallel()

	for talos, want := range map[string]string{"v1.10.4": "3.5", "v1.13.0": "3.6", "v1.14.1": "3.7", "": "", "main": ""} {
		if got := etcdstate.OfTalos(talos); got != want {
			t.Errorf("Talos %q has etcd %q, want %q", talos, got, want)
		}
	}

	for version, want := range map[string]string{"3.7.1": "3.7", "v3.6.12": "3.6", "3.6": "3.6", "": "", "latest": "",
		"3.10.1": "3.10", "3.9.0": "3.9", "3.x": "", ".7": "", "3.": ""} {
		if got := etcdstate.MinorOf(version); got != want {
			t.Errorf("minor of %q is %q, want %q", version, got, want)
		}
	}
}

func TestBefore_nothingComesBeforeAMajorVersion(t *testing.T) {
	t.Parallel()

	for version, want := range map[string]string{"3.7": "3.6", "3.1": "3.0", "3.0": "", "3": "", "": "", "main": ""} {
		if got := etcdstate.Before(version); got != want {
			t.Errorf("before %q: %q, want %q", version, got, want)
		}
	}
}
