package cluster_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestCluster_importsNothingThatActs keeps the decisions pure: the package may import the standard library except
// packages that reach a network, a clock, or a disk.
func TestCluster_importsNothingThatActs(t *testing.T) {
	var files []string

	for _, folder := range []string{".", "step"} {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}

		files = append(files, found...)
	}

	const module = "github.com/talosop/terraform-provider-talosop/internal/"

	pure := map[string]bool{module + "cluster/step": true, module + "etcdstate": true, module + "kubenames": true,
		module + "kubestate": true, module + "metakey": true, module + "operation": true, module + "rotation": true, module + "versions": true, module + "wipe": true}
	acts := map[string]bool{"context": true, "net": true, "net/http": true, "os": true, "os/exec": true, "sync": true,
		"log": true}

	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}

		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}

			first, _, _ := strings.Cut(path, "/")
			if acts[path] || strings.Contains(first, ".") && !pure[path] {
				t.Errorf("%s imports %s: decisions are made from their arguments alone", name, path)
			}
		}
	}
}
