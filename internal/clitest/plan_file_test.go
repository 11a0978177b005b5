package clitest

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a plan holds is found in its file, though that is compressed.
func TestPlanFile_isUncompressed(t *testing.T) {
	t.Parallel()

	const secret = "a secret, a secret, a secret"

	var file bytes.Buffer

	archive := zip.NewWriter(&file)
	for name, content := range map[string]string{"tfplan": secret, "tfstate": "{}"} {
		entry, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := entry.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}

	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "a.plan")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	if strings.Contains(file.String(), secret) {
		t.Error("the file is not compressed, so that this test shows nothing")
	}

	if text := unzipPlan(t, path); !strings.Contains(text, secret) {
		t.Errorf("the plan reads %q", text)
	}
}
