package provider_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	ownTest   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// Every test that SECURITY.md names exists.
func TestSecurity_namesTestsThatExist(t *testing.T) {
	t.Parallel()

	exists := map[string]bool{}

	for _, folder := range []string{"internal", "tools"} {
		tftest.Must(t, filepath.WalkDir(filepath.Join(repository, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}

			for _, found := range ownTest.FindAllStringSubmatch(tftest.ReadFile(t, path), -1) {
				exists[found[1]] = true
			}

			return nil
		}))
	}

	named := namedTest.FindAllStringSubmatch(tftest.ReadFile(t, filepath.Join(repository, ".github/SECURITY.md")), -1)
	if len(named) == 0 {
		t.Error("SECURITY.md names no test")
	}

	for _, found := range named {
		if !exists[found[1]] {
			t.Errorf("SECURITY.md names the test %s, which does not exist", found[1])
		}
	}
}
