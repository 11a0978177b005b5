package wipe_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// A selection is comparable, whatever the order of its names.
func TestSelect_isComparable(t *testing.T) {
	t.Parallel()

	one := wipe.Select([]string{"u-data", "EPHEMERAL", "u-data"}, []string{"/dev/sdb"})
	if other := wipe.Select([]string{"EPHEMERAL", "u-data"}, []string{"/dev/sdb"}); one != other {
		t.Errorf("%v differs from %v", one, other)
	}

	if text := one.String(); text != "EPHEMERAL, u-data, /dev/sdb" {
		t.Error(text)
	}

	if !slices.Equal(one.Volumes(), []string{"EPHEMERAL", "u-data"}) || !slices.Equal(one.Disks(), []string{"/dev/sdb"}) {
		t.Errorf("%q, %q", one.Volumes(), one.Disks())
	}

	if none := wipe.Select(nil, nil); none != (wipe.Selection{}) || len(none.Volumes()) > 0 {
		t.Errorf("%v", none)
	}
}

func TestSelection_losesEtcd(t *testing.T) {
	t.Parallel()

	for volume, loses := range map[string]bool{
		"EPHEMERAL": true, "ETCD": true, "CRI": false, "KUBELET": false, "LOG": false, "STATE": false, "u-etcd": false,
	} {
		if got := wipe.Select([]string{volume}, nil).LosesEtcd(); got != loses {
			t.Errorf("%s: %t", volume, got)
		}
	}
}

func TestVolumes_byName(t *testing.T) {
	t.Parallel()

	for name, runtime := range map[string]bool{
		"EPHEMERAL": true, "ETCD": true, "LOG": true, "u-data": true, "s-swap1": true, "STATE": false, "META": false,
		"BOOT": false, "ephemeral": false, "data": false, "u-": false, "y-data": false, "": false,
	} {
		if got := wipe.IsRuntimeVolume(name); got != runtime {
			t.Errorf("%q: %t", name, got)
		}
	}
}
