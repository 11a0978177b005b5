package etcdbackup_test

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// The resource and the list of a folder have the number of objects by resource, and the next snapshot counts again.
func TestBackup_objects(t *testing.T) {
	t.Parallel()

	b := newBackups(t, sim.Options{})
	folder := tftest.Config{"path": t.TempDir()}
	d := tftest.Drive(t, "talosop_etcd_backup", nil)

	write := func(keys ...string) {
		t.Helper()

		for _, key := range keys {
			tftest.Must(t, b.Site.ControlPlane[0].PutEtcdKeys(t.Context(), map[string]string{key: "kept"}))
		}
	}

	take := func(trigger string, secrets int) {
		t.Helper()

		config := b.config(nil, tftest.Config{"file": folder, "triggers": tftest.Config{"taken": trigger}})
		taken := d.Apply(t, config).Must(t).Value
		objects := tftest.AttributeOf(t, taken, "objects")
		expectObjects(t, objects, map[string]int{"secrets": secrets, "certificates.cert-manager.io": 1})

		state, _ := tftest.ReadSilent(t, "talosop_etcd_backups", tftest.Config{"cluster": b.Handle, "file": folder})

		var listed []tftypes.Value
		tftest.Must(t, tftest.FieldsOf(t, state)["backups"].As(&listed))

		// The keys of two snapshots of one second are not in order.
		same := func(v tftypes.Value) bool { return tftest.Text(t, v, "key") == tftest.Text(t, taken, "key") }
		if at := slices.IndexFunc(listed, same); at < 0 || !tftest.AttributeOf(t, listed[at], "objects").Equal(objects) {
			t.Errorf("the list has %s, the resource %s", listed, objects)
		}
	}

	write("/registry/secrets/default/a", "/registry/secrets/default/b", "/registry/cert-manager.io/certificates/default/c")
	take("first", 2)
	write("/registry/secrets/default/c")
	take("second", 3)
}

// expectObjects checks some numbers.
func expectObjects(t *testing.T, objects tftypes.Value, want map[string]int) {
	t.Helper()

	var counts map[string]tftypes.Value
	tftest.Must(t, objects.As(&counts))

	for resource, count := range want {
		if got := counts[resource]; !got.Equal(tftypes.NewValue(tftypes.Number, count)) {
			t.Errorf("%s: %s, want %d", resource, got, count)
		}
	}
}
