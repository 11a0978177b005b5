package restore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
)

// Errors of fetching a file use terms that fit a file and its keys.
func TestRestore_errorsOfFiles(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	file := filepath.Join(folder, "a.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		Path       string
		passphrase types.String
		err        error
		says       string
	}{
		"missing": {filepath.Join(folder, "none.db"), types.StringNull(), store.ErrNotFound,
			"there is no such file"},
		"a folder":           {folder, types.StringNull(), errors.New("read"), folder + " is a folder"},
		"a wrong passphrase": {file, types.StringValue("wrong"), backup.ErrLocked, "the passphrase does not open it"},
		"broken":             {file, types.StringNull(), backup.ErrDamaged, backup.ErrDamaged.Error()},
	} {
		at := types.ObjectValueMust(map[string]attr.Type{"path": types.StringType},
			map[string]attr.Value{"path": types.StringValue(c.Path)})
		r := &restore.Restoration{Set: machineset.Set{Restore: machineset.Restoration{From: c.Path}},
			Snapshot: restore.Snapshot{File: at, Passphrase: c.passphrase}}

		if reason := r.Because(c.err).Error(); !strings.HasSuffix(reason, c.says) {
			t.Errorf("%s: %s", name, reason)
		}
	}
}
