package clitest

import (
	"archive/zip"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// PlanFile returns the content of everything in a plan file of the workspace, one after the other: what the CLI plans
// (tfplan), the state and the configuration. The file itself is a compressed zip, in which no text is found.
func (w *Workspace) PlanFile(name string) string {
	w.t.Helper()

	return unzipPlan(w.t, filepath.Join(w.Dir, name))
}

// SavedPlan saves a plan and returns what the CLI shows of it as JSON, and all that its file holds.
func (w *Workspace) SavedPlan(name string, args ...string) (shown, content string) {
	w.t.Helper()
	w.MustRun(append([]string{"plan", "-out", name}, args...)...)

	return w.MustRun("show", "-json", name).Stdout, w.PlanFile(name)
}

func unzipPlan(tb testing.TB, path string) string {
	tb.Helper()

	archive, err := zip.OpenReader(path)
	if err != nil {
		tb.Fatalf("open plan file: %v", err)
	}
	defer func() {
		if err := archive.Close(); err != nil {
			tb.Errorf("close plan file: %v", err)
		}
	}()

	var (
		text  strings.Builder
		plans int
	)

	for _, file := range archive.File {
		if file.Name == "tfplan" {
			plans++
		}

		content, err := file.Open()
		if err != nil {
			tb.Fatalf("open %s of the plan file: %v", file.Name, err)
		}

		if _, err := io.Copy(&text, content); err != nil {
			tb.Fatalf("read %s of the plan file: %v", file.Name, err)
		}

		if err := content.Close(); err != nil {
			tb.Fatal(err)
		}
	}

	if plans != 1 {
		tb.Fatalf("the plan file holds %d tfplan", plans)
	}

	return text.String()
}
