package provider_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A wrong value is one error, at its attribute.
func TestValidate_oneMistakeOnce(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		value any
		path  []string
		want  string
	}{
		"kind of disk": {tftest.Config{"disk_selector": tftest.Config{"type": "floppy"}},
			[]string{"control_plane", "install"},
			"Invalid control_plane.install.disk_selector.type"},
		"network plugin": {"calico", []string{"cni", "name"}, "Invalid cni.name"},
	} {
		if got := tftest.Validate(t, "talosop_cluster", tftest.With(tftest.BaseCluster(), test.value,
			test.path...)); len(got) != 1 ||
			got[0].Summary != test.want {
			t.Errorf("%s: %s", name, tftest.Show(got))
		}
	}
}
