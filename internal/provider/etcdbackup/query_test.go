package etcdbackup_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// The snapshots of a store are listed newest first, with the reasons why they cannot be restored. Only the store is
// asked.
func TestQuery_backupsOfAFolder(t *testing.T) {
	t.Parallel()

	folder, mark := t.TempDir(), tftest.MarkOf(t, tftest.Bundle())
	keys := []string{
		"prod/etcd-snapshot-2026-01-03T03-00-00Z-" + mark + "-abcdef.db.zst.age",
		"prod/etcd-snapshot-2026-01-02T03-00-00Z-" + mark + "-abcdef.db",
	}

	for _, key := range append(keys, "other/"+filepath.Base(keys[0])) {
		_, err := file.Store{Path: folder}.Put(t.Context(), key, bytes.NewReader([]byte("what is stored")))
		tftest.Must(t, err)
	}

	provider := tftest.Config{"clusters": tftest.Config{"prod": tftest.Config{"secrets": tftest.Bundle()}}}
	config := tftest.Config{"cluster": "prod", "file": tftest.Config{"path": folder}, "recipients": []any{testRecipient}}

	found, diagnostics := tftest.Query(t, provider, "talosop_etcd_backup", config, true, 100)
	if len(found) != 2 || diagnostics != "" {
		t.Fatalf("it found %s, and says %s", tftest.Displays(found), diagnostics)
	}

	for i, want := range []string{
		"2026-01-03T03:00:00Z, 14 bytes, encrypted, not restorable: it has no record that a key of this cluster wrote",
		"2026-01-02T03:00:00Z, 14 bytes, not restorable: it has no record that a key of this cluster wrote",
	} {
		resource := tftypes.NewValue(tftest.TypeOf(t, "talosop_etcd_backup"), found[i].Resource)
		identity := tftypes.NewValue(tftest.IdentityTypeOf(t, "talosop_etcd_backup"), found[i].Identity)

		if !strings.HasPrefix(found[i].Display, want) || tftest.Text(t, resource, "key") != keys[i] ||
			tftest.Text(t, identity, "key") != keys[i] || tftest.Text(t, identity, "path") != folder ||
			tftest.Text(t, identity, "cluster") != "prod" || found[i].Identity["recipients"].IsNull() != (i == 1) {
			t.Errorf("%s: %s with %s", found[i].Display, resource, identity)
		}
	}

	for name, wrong := range map[string]tftest.Config{
		"Found neither `s3` nor `file`": {"cluster": "prod"},
		"read the secrets":              {"cluster": "unheard", "file": tftest.Config{"path": folder}},
		"does not exist":                {"cluster": "prod", "file": tftest.Config{"path": filepath.Join(folder, "nowhere")}},
	} {
		if found, diagnostics := tftest.Query(t, provider, "talosop_etcd_backup", wrong, false, 100); len(found) > 0 ||
			!strings.Contains(diagnostics, name) {
			t.Errorf("%s: it found %v, and says %s", name, found, diagnostics)
		}
	}
}

// All snapshots are of one cluster, whose control planes are asked once for all of them.
func TestQuery_backupsAskTheClusterOnce(t *testing.T) {
	t.Parallel()

	s := sitetest.NewLiving(t, sim.Options{})

	folder, mark := t.TempDir(), tftest.MarkOf(t, tftest.Bundle())
	for _, day := range []string{"02", "03"} {
		key := "test/etcd-snapshot-2026-01-" + day + "T03-00-00Z-" + mark + "-abcdef.db"
		_, err := file.Store{Path: folder}.Put(t.Context(), key, bytes.NewReader([]byte("what is stored")))
		tftest.Must(t, err)
	}

	provider := tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": tftest.Bundle()}}}
	config := tftest.Config{"cluster": "test", "file": tftest.Config{"path": folder},
		"control_plane": []any{s.ControlPlane[0].Address().String()}}
	reads := func(most int64) int {
		s.ForgetCalls()

		if found, diagnostics := tftest.Query(t, provider, "talosop_etcd_backup", config, true, most); len(found) != int(most) {
			t.Errorf("it found %s, and says %s", tftest.Displays(found), diagnostics)
		}

		return len(s.CallsTo("Version"))
	}

	if one, both := reads(1), reads(2); one == 0 || both != one {
		t.Errorf("the control plane is asked for its version %d times for one snapshot, and %d times for two", one, both)
	}
}
