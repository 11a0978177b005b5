package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A snapshot in a folder that a refresh reports as modified counts for retain no more: the good one before it stays.
func TestBackup_modifiedInAFolderDoesNotCount(t *testing.T) {
	t.Parallel()

	b, folder := newLiving(t, sim.Options{}), t.TempDir()
	d := drive(t, "talosop_etcd_backup", nil)
	config := func(trigger string) configuration {
		return configuration{"cluster": b.handle, "file": configuration{"path": folder}, "retain": configuration{"count": 2},
			"triggers": configuration{"run": trigger}}
	}
	at := func(key string) string { return filepath.Join(folder, filepath.FromSlash(key)) }

	first := text(t, d.apply(t, config("1")).must(t).Value, "key")
	second := text(t, d.apply(t, config("2")).must(t).Value, "key")

	content, err := os.ReadFile(at(second))
	must(t, err)

	content[len(content)/2] ^= 0xff
	must(t, os.WriteFile(at(second), content, 0o600))

	if said := show(d.refresh(t).diagnostics); !strings.Contains(said, "A backup is") || !strings.Contains(said, second) {
		t.Fatalf("the refresh says %s", said)
	}

	applied := d.apply(t, config("2")).must(t).Value
	third := text(t, applied, "key")

	for _, key := range []string{first, second, third} {
		if _, err := os.Stat(at(key)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}

	if kept := fieldsOf(t, applied)["kept"]; third == second || number(t, kept) != 2 {
		t.Errorf("the apply keeps %s, and stored %s", kept, third)
	}

	// Two good ones are newer then, and everything older goes.
	fourth := text(t, d.apply(t, config("3")).must(t).Value, "key")
	for key, stays := range map[string]bool{first: false, second: false, third: true, fourth: true} {
		if _, err := os.Stat(at(key)); (err == nil) != stays {
			t.Errorf("%s: %v, want that it stays: %v", key, err, stays)
		}
	}
}
