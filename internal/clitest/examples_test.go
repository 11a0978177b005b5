package clitest_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

const examples = "../../examples"

const requiredProviders = `terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}
`

// TestAccExamplesValidate holds every example to what its reader will do with it: copy the folder and run a CLI in it.
func TestAccExamplesValidate(t *testing.T) {
	folders := exampleFolders(t)
	if len(folders) == 0 {
		t.Fatalf("no examples below %s", examples)
	}

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		for _, folder := range folders {
			t.Run(filepath.ToSlash(folder), func(t *testing.T) {
				w := clitest.NewWorkspace(t, cli)
				w.CopyFrom(filepath.Join(examples, folder))
				// Examples of one type leave out what the page of the provider says once.
				if !strings.Contains(w.Read("*.tf"), "required_providers") {
					w.Write("required_providers.tf", requiredProviders)
				}

				w.Init()
				w.MustRun("validate")
			})
		}
	})
}

// exampleFolders are the folders below examples that hold configuration, sorted.
func exampleFolders(t *testing.T) []string {
	t.Helper()

	var folders []string

	err := filepath.WalkDir(examples, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if folder, err := filepath.Rel(examples, filepath.Dir(path)); err == nil && strings.HasSuffix(entry.Name(), ".tf") {
			folders = append(folders, folder)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	slices.Sort(folders)

	return slices.Compact(folders)
}
