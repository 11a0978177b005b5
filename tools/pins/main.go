// Command pins writes the current versions of Talos and Kubernetes into the examples and the pages for users. They
// follow from the machinery library in go.mod (machineconfig.CurrentTalos, CurrentKubernetes).
package main

import (
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// places are the files and folders with versions that users copy.
var places = []string{"README.md", "examples", "templates"}

// recorded are folders with output that tests record.
var recorded = []string{"examples/guides/troubleshooting"}

// older are the former releases that files name on purpose, because they show an upgrade.
var older = map[string][]string{
	"examples/functions/upgrade_path/function.tf":  {"v1.11.3", "v1.12.12", "v1.13.9"},
	"examples/guides/kubernetes-upgrade/main.tf":   {"v1.35.4", "v1.36.3"},
	"examples/guides/tutorial/first.tfvars":        {"v1.14.0"},
	"examples/guides/tutorial/worker.tfvars":       {"v1.14.0"},
	"examples/stacks/upgrade/versions.auto.tfvars": {"v1.12.12", "v1.35.4"},
	"templates/guides/holding-changes.md.tmpl":     {"v1.13.9"},
	"templates/guides/troubleshooting.md.tmpl":     {"v1.36.22"},
	"templates/guides/tutorial.md.tmpl":            {"v1.14.0"},
}

func main() {
	log.SetFlags(0)

	changes, err := pinned(".")
	if err != nil {
		log.Fatal(err)
	}

	for file, content := range changes {
		//nolint:gosec // examples and pages are for everybody
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// pinned are the files below root that name other versions, with the current ones in their place.
func pinned(root string) (map[string]string, error) {
	changes := map[string]string{}

	for _, place := range places {
		err := filepath.WalkDir(filepath.Join(root, place), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}

			content, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read file with versions: %w", err)
			}

			path, err := filepath.Rel(root, file)
			if err != nil {
				return fmt.Errorf("find file with versions: %w", err)
			}

			if current := pin(filepath.ToSlash(path), string(content)); current != string(content) {
				changes[file] = current
			}

			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	return changes, nil
}

// version is a release such as v1.14.1, and not a part of a longer number.
var version = regexp.MustCompile(`\bv1\.(\d+)\.\d+\b`)

// pin is the content of a file with the current versions.
func pin(path, content string) string {
	if slices.Contains(recorded, filepath.ToSlash(filepath.Dir(path))) {
		return content
	}

	return version.ReplaceAllStringFunc(content, func(found string) string {
		if slices.Contains(older[path], found) {
			return found
		}

		return current(found)
	})
}

// current is the version in use in place of another one of Talos or Kubernetes. Versions of other programs stay.
func current(found string) string {
	minor, err := strconv.ParseUint(version.FindStringSubmatch(found)[1], 10, 64)
	newest, _, _ := strings.Cut(strings.TrimPrefix(machineconfig.CurrentKubernetes, "v1."), ".")
	kubernetes, errNewest := strconv.ParseUint(newest, 10, 64)

	switch {
	case err != nil || errNewest != nil:
		return found
	case minor >= talosversion.Oldest().Minor && minor <= talosversion.Newest().Minor:
		return machineconfig.CurrentTalos
	case minor >= oldestKubernetes && minor <= kubernetes:
		return machineconfig.CurrentKubernetes
	default:
		return found
	}
}

// oldestKubernetes is the oldest minor version that a supported Talos runs.
const oldestKubernetes = 28
