package kubenames_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

func TestNodeName_fromHostNames(t *testing.T) {
	t.Parallel()

	for hostname, want := range map[string][2]string{
		"":           {"", ""},
		"rack_1":     {"rack-1", "rack-1"},
		"A_1":        {"a-1", "a-1"},
		"_x":         {"x", "x"},
		"W-1.a.test": {"w-1", "w-1.a.test"},
	} {
		got := [2]string{kubenames.NodeName(hostname, false), kubenames.NodeName(hostname, true)}
		if got != want {
			t.Errorf("the nodes of %q are %q, want %q", hostname, got, want)
		}
	}
}
