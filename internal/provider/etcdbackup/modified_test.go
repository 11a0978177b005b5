package etcdbackup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A snapshot in a folder that a refresh reports as modified no longer counts for retain: the good one before it
// stays.
func TestBackup_modifiedInAFolderDoesNotCount(t *testing.T) {
	t.Parallel()

	b, folder := sitetest.NewLiving(t, sim.Options{}), t.TempDir()
	d := tftest.Drive(t, "talosop_etcd_backup", nil)
	config := func(trigger string) tftest.Config {
		return tftest.Config{"cluster": b.Handle, "file": tftest.Config{"path": folder}, "retain": tftest.Config{"count": 2},
			"triggers": tftest.Config{"run": trigger}}
	}
	at := func(key string) string { return filepath.Join(folder, filepath.FromSlash(key)) }

	first := tftest.Text(t, d.Apply(t, config("1")).Must(t).Value, "key")
	second := tftest.Text(t, d.Apply(t, config("2")).Must(t).Value, "key")

	content, err := os.ReadFile(at(second))
	tftest.Must(t, err)

	content[len(content)/2] ^= 0xff
	tftest.Must(t, os.WriteFile(at(second), content, 0o600))

	if diagnostics := tftest.Show(d.Refresh(t).Diagnostics); !strings.Contains(diagnostics, "[backup_lost]") ||
		!strings.Contains(diagnostics, second) {
		t.Fatalf("the refresh says %s", diagnostics)
	}

	applied := d.Apply(t, config("2")).Must(t).Value
	third := tftest.Text(t, applied, "key")

	for _, key := range []string{first, second, third} {
		if _, err := os.Stat(at(key)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}

	if kept := tftest.FieldsOf(t, applied)["kept"]; third == second || tftest.Number(t, kept) != 2 {
		t.Errorf("the apply keeps %s, and stored %s", kept, third)
	}

	// Then there are two newer good ones, and everything older is deleted.
	fourth := tftest.Text(t, d.Apply(t, config("3")).Must(t).Value, "key")
	for key, stays := range map[string]bool{first: false, second: false, third: true, fourth: true} {
		if _, err := os.Stat(at(key)); (err == nil) != stays {
			t.Errorf("%s: %v, want that it stays: %v", key, err, stays)
		}
	}
}
