// Command groupversions writes the table of the group versions that kube-apiserver registers, by minor versions of
// Kubernetes 1. Those of k8s.io/api are all but apidiscovery.k8s.io (Kubernetes 1.36, pkg/controlplane/
// import_known_versions.go), and apiextensions-apiserver and kube-aggregator have one group each.
package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/tools/machinery"
)

// The minor versions of Kubernetes 1 that are asked: those that a supported Talos runs.
const oldest, newest = 28, 37

// served is a group of the library that has no storage.
const served = "apidiscovery.k8s.io"

// ofOthers are registered by the two API servers inside kube-apiserver (k8s.io/apiextensions-apiserver and
// k8s.io/kube-aggregator 0.36, apis/*/install).
var ofOthers = []string{"apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", "apiregistration.k8s.io/v1",
	"apiregistration.k8s.io/v1beta1"}

var groupName = regexp.MustCompile(`GroupName *= *"([^"]*)"`)

func main() { machinery.Write(generate) }

// generate is the table: a line for each group version, with the first and the last minor version that has it.
func generate(ctx context.Context) ([]byte, error) {
	first, last := map[string]int{}, map[string]int{}

	for minor := oldest; minor <= newest; minor++ {
		all, err := groupVersions(ctx, minor)
		if err != nil {
			return nil, err
		}

		for _, name := range append(all, ofOthers...) {
			if _, known := first[name]; !known {
				first[name] = minor
			}

			last[name] = minor
		}
	}

	table := &bytes.Buffer{}
	fmt.Fprintf(table, "# Group versions that kube-apiserver registers, with the first and last minor version of "+
		"Kubernetes 1 that has each; written by make groupversions from k8s.io/api v0.%d.0 to v0.%d.0\n", oldest, newest)

	for _, name := range slices.Sorted(maps.Keys(first)) {
		fmt.Fprintln(table, name, first[name], last[name])
	}

	return table.Bytes(), nil
}

// groupVersions reads those of a release of k8s.io/api. The core group has the empty name.
func groupVersions(ctx context.Context, minor int) ([]string, error) {
	folder, err := machinery.Downloaded(ctx, fmt.Sprintf("k8s.io/api@v0.%d.0", minor))
	if err != nil {
		return nil, err
	}

	files, err := filepath.Glob(filepath.Join(folder, "*", "v*", "register.go"))
	if err != nil {
		return nil, err
	}

	var all []string

	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a file of the module cache
		if err != nil {
			return nil, err
		}

		name := groupName.FindSubmatch(content)
		if name == nil {
			return nil, fmt.Errorf("%s has no name of a group", file)
		}

		if group := string(name[1]); group != served {
			all = append(all, strings.Join([]string{group, filepath.Base(filepath.Dir(file))}, "/"))
		}
	}

	return all, nil
}
