package etcdbackup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// The data source lists the snapshots for the cluster of a handle: nothing incomplete, nothing of others, and
// damaged ones with a warning.
func TestBackups_ofAFolder(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	mark := tftest.MarkOf(t, tftest.Bundle())
	s := file.Store{Path: folder}

	named := func(day, mark, suffix string) string {
		return "prod/etcd-snapshot-2026-01-" + day + "T03-00-00Z-" + mark + "-abcdef.db" + suffix
	}

	old, damaged := named("02", mark, ".zst.age"), named("03", mark, "")

	for _, key := range []string{old, damaged, damaged + ".json", named("04", "0123456789abcdef", ""),
		"prod/" + mark + ".txt", "other/" + filepath.Base(old)} {
		if _, err := s.Put(t.Context(), key, bytes.NewReader([]byte("what is stored"))); err != nil {
			t.Fatal(err)
		}
	}

	// What a killed run leaves of the newest snapshot.
	cut := errors.New("killed")
	if _, err := s.Put(t.Context(), named("05", mark, ""),
		io.MultiReader(strings.NewReader("half"), &failing{cut})); !errors.Is(err, cut) {
		t.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(folder, "prod", ".talosop-partial-"+filepath.Base(named("05", mark, ""))+"-1"),
		[]byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}

	state, diagnostics := tftest.ReadSilent(t, "talosop_etcd_backups",
		tftest.Config{"cluster": tftest.WrittenHandle(), "file": tftest.Config{"path": folder}})
	if len(diagnostics) != 1 || !strings.Contains(tftest.Show(diagnostics), "[backups_damaged]") || !strings.Contains(diagnostics[0].Detail, damaged) {
		t.Fatalf("it says %s", tftest.Show(diagnostics))
	}

	got := tftest.FieldsOf(t, state)
	if !got["latest"].IsNull() {
		t.Errorf("latest is %s, which any client can have put there", got["latest"])
	}

	var backups []tftypes.Value
	if err := got["backups"].As(&backups); err != nil {
		t.Fatal(err)
	}

	var keys []string

	for _, b := range backups {
		var key string
		if err := tftest.AttributeOf(t, b, "key").As(&key); err != nil {
			t.Fatal(err)
		}

		keys = append(keys, key)
	}

	if !slices.Equal(keys, []string{damaged, old}) {
		t.Errorf("the backups are %q", keys)
	}

	if encryption := tftest.AttributeOf(t, backups[1], "encryption"); !encryption.Equal(tftypes.NewValue(tftypes.String,
		"age")) {
		t.Errorf("the encryption of %s is %s", old, encryption)
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// A folder that does not exist is an empty list with a warning and no error: its path may be wrong.
func TestBackups_ofAMissingFolder(t *testing.T) {
	t.Parallel()

	state, diagnostics := tftest.ReadSilent(t, "talosop_etcd_backups",
		tftest.Config{"cluster": tftest.WrittenHandle(), "file": tftest.Config{"path": filepath.Join(t.TempDir(), "none")}})
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		!strings.Contains(tftest.Show(diagnostics), "[backup_folder_missing]") {
		t.Fatalf("it says %s", tftest.Show(diagnostics))
	}

	got := tftest.FieldsOf(t, state)

	var backups []tftypes.Value
	if err := got["backups"].As(&backups); err != nil || backups == nil || len(backups) > 0 || !got["latest"].IsNull() {
		t.Errorf("backups are %s (%v), latest is %s", got["backups"], err, got["latest"])
	}
}

// A file in place of the folder is named, without a word about buckets.
func TestBackups_ofAFile(t *testing.T) {
	t.Parallel()

	name := filepath.Join(t.TempDir(), "a-file")
	tftest.Must(t, os.WriteFile(name, nil, 0o600))

	_, diagnostics := tftest.ReadSilent(t, "talosop_etcd_backups",
		tftest.Config{"cluster": tftest.WrittenHandle(), "file": tftest.Config{"path": name}})
	if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, name+" is a file") || strings.Contains(diagnostics[0].Detail, "AWS") {
		t.Errorf("it says %s", tftest.Show(diagnostics))
	}
}

// A store that does not answer is an error that names it.
func TestBackups_ofASilentServer(t *testing.T) {
	t.Parallel()

	_, diagnostics := tftest.ReadSilent(t, "talosop_etcd_backups", tftest.Config{
		"cluster": tftest.WrittenHandle(), "timeouts": tftest.Config{"read": "10s"},
		"s3": tftest.Config{"bucket": "backups", "endpoint": "http://127.0.0.1:1", "insecure_skip_tls_verify": true},
	})
	if len(diagnostics) != 1 || !strings.Contains(tftest.Show(diagnostics), "[backups_not_listed]") ||
		!strings.Contains(diagnostics[0].Detail, "s3://backups at http://127.0.0.1:1") {
		t.Errorf("it says %s", tftest.Show(diagnostics))
	}
}

// The versions of the cluster decide what is restorable, and latest is the newest of these.
func TestBackups_restorableByVersion(t *testing.T) {
	t.Parallel()

	entry := func(day int, size int64, facts backup.Facts) backup.Entry {
		at := time.Date(2026, 1, day, 3, 0, 0, 0, time.UTC)
		key := fmt.Sprintf("etcd-%d.db", day)

		return backup.Entry{
			Object: store.Object{Key: key, Size: 100}, Name: backup.Name{At: at, Mark: "0123456789abcdef"},
			Record: &backup.Record{Key: key, Size: size, Facts: facts},
		}
	}

	unrecorded := entry(2, 100, backup.Facts{})
	unrecorded.Record = nil

	entries := []backup.Entry{
		entry(1, 100, backup.Facts{TalosVersion: "v1.10.4", KubernetesVersion: "v1.32.0"}),
		unrecorded,
		entry(3, 100, backup.Facts{TalosVersion: "v1.13.0", KubernetesVersion: "v1.35.9"}),
		entry(4, 100, backup.Facts{TalosVersion: "v1.13.0", KubernetesVersion: "v1.36.0"}),
		entry(5, 99, backup.Facts{}),
	}

	for name, test := range map[string]struct {
		handle  clusterhandle.AccessModel
		reasons []string
		latest  string
	}{
		"versions unknown": {
			handle:  clusterhandle.AccessModel{},
			reasons: []string{"100 bytes, and 99 were stored", "", "", "no record", ""}, latest: "etcd-4.db",
		},
		"Kubernetes of the snapshots": {
			handle: clusterhandle.AccessModel{KubernetesVersion: types.StringValue("v1.35.2"),
				TalosVersion: types.StringValue("v1.13.0")},
			reasons: []string{"100 bytes, and 99 were stored", "Kubernetes v1.36.0 wrote it, and the older v1.35.2", "",
				"no record", ""},
			latest: "etcd-3.db",
		},
		"an older etcd": {
			handle: clusterhandle.AccessModel{KubernetesVersion: types.StringValue("v1.33.0"),
				TalosVersion: types.StringValue("v1.10.2")},
			reasons: []string{
				"100 bytes, and 99 were stored", "Kubernetes v1.36.0 wrote it", "Kubernetes v1.35.9 wrote it", "no record", "",
			}, latest: "etcd-1.db",
		},
		"an older etcd alone": {
			handle: clusterhandle.AccessModel{TalosVersion: types.StringValue("v1.10.2")},
			reasons: []string{"100 bytes, and 99 were stored", "the etcd of Talos 1.13.0 wrote it",
				"the etcd of Talos 1.13.0 wrote it", "no record", ""}, latest: "etcd-1.db",
		},
	} {
		backups := etcdbackup.Judge(entries, test.handle)

		var m etcdbackup.EtcdBackupsModel
		if m.Fill(backups); m.Latest.ValueString() != test.latest {
			t.Errorf("%s: latest is %s, want %s", name, m.Latest, test.latest)
		}

		for i, b := range backups {
			if (b.Reason == "") != (test.reasons[i] == "") ||
				!strings.Contains(strings.ReplaceAll(b.Reason, "Talos v", "Talos "), test.reasons[i]) {
				t.Errorf("%s: %s is refused because %q, want %q", name, b.Key, b.Reason, test.reasons[i])
			}
		}
	}
}

// A damaged record makes its snapshot damaged. One that may not be read, or could not be read now, proves nothing,
// and without a record nothing is restored without consent.
func TestBackups_unreadableRecord(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		RecordErr        error
		refused, Damaged bool
	}{
		{fmt.Errorf("read it: %w", backup.ErrRecord), true, true},
		{fmt.Errorf("read it: %w", store.ErrDenied), true, false},
		{context.DeadlineExceeded, true, false},
	} {
		j := etcdbackup.Judge([]backup.Entry{{Object: store.Object{Key: "etcd.db"}, RecordErr: test.RecordErr}},
			clusterhandle.AccessModel{})[0]

		if (j.Reason != "") != test.refused || j.Damaged != test.Damaged {
			t.Errorf("%v: refused because %q, damaged %t", test.RecordErr, j.Reason, j.Damaged)
		}
	}
}
