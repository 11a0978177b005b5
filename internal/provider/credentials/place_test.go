package credentials

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// On a file system without permissions a file counts as written, not as opened by a later change.
func TestObserve_onFileSystemsWithoutModes(t *testing.T) {
	t.Parallel()

	content := []byte("users:\n  - user:\n      client-key-data: a2V5\n")

	for name, test := range map[string]struct {
		written, now fs.FileMode
		want         string
	}{
		"its owner's alone":          {written: 0o600, now: 0o600, want: statusValid},
		"opened since":               {written: 0o600, now: 0o644, want: statusChanged},
		"never private":              {written: 0o755, now: 0o755, want: statusValid},
		"opened further since":       {written: 0o755, now: 0o777, want: statusChanged},
		"written by an older build":  {now: 0o600, want: statusValid},
		"of an older build, opened":  {now: 0o640, want: statusChanged},
		"its owner's alone by now":   {written: 0o755, now: 0o600, want: statusValid},
		"opened for its group alone": {written: 0o600, now: 0o640, want: statusChanged},
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}

		if err := os.Chmod(path, test.now); err != nil {
			t.Fatal(err)
		}

		m := &fileModel{Path: types.StringValue(path), writtenModel: writtenModel{
			NotAfter:    timetypes.NewRFC3339TimeValue(time.Now().Add(time.Hour)),
			Fingerprint: types.StringValue(pki.ConfigFingerprint(content)),
		}}
		r := &fileResource{kind: fileKind{only: func([]byte, ...string) bool { return true }}}

		got, err := r.observe(t.Context(), m, order{Mode: test.written, RenewBefore: time.Minute})
		if err != nil || got != test.want {
			t.Errorf("%s: the status is %s, want %s (%v)", name, got, test.want, err)
		}
	}
}

// A file system without permissions causes a warning; one with permissions does not.
func TestWarnOfReaders_onFileSystemsWithoutModes(t *testing.T) {
	t.Parallel()

	for mode, want := range map[fs.FileMode]string{0o600: "", 0o700: "", 0o644: "-rw-r--r--", 0o777: "-rwxrwxrwx"} {
		diagnostics := warnOfReaders("/mnt/config", mode)

		switch {
		case want == "" && len(diagnostics) > 0:
			t.Errorf("%s: it says %v", mode, diagnostics)
		case want == "":
		case len(diagnostics) != 1 || diagnostics.HasError() || !strings.Contains(diagnostics[0].Summary(), "/mnt/config") ||
			!strings.Contains(diagnostics[0].Detail(), "shows the file as "+want):
			t.Errorf("%s: it says %v", mode, diagnostics)
		}
	}
}
