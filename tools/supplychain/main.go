// Command supplychain lists the licenses of everything that is linked into the provider, on any system that it is
// released for, and fails for a module without one or with one that is not allowed. It needs no network: the texts
// are those in the module cache.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// released are the systems that .goreleaser.yml builds for; what is linked differs by system.
var released = []string{"linux", "darwin", "windows", "freebsd"}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	linked, err := linkedModules(ctx)
	if err != nil {
		return err
	}

	var (
		problems []error
		count    = map[string]int{}
	)

	for _, m := range linked {
		found, err := m.licenses()
		problems = append(problems, err)
		names := strings.Join(found, ", ")
		count[names]++

		if _, err := fmt.Fprintf(out, "%-60s %s\n", m.name, names); err != nil {
			return err
		}
	}

	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("what is linked into the provider may be under %s alone:\n%w", strings.Join(allowedNames(), ", "),
			err)
	}

	for _, names := range slices.Sorted(maps.Keys(count)) {
		if _, err := fmt.Fprintf(out, "%4d modules under %s\n", count[names], names); err != nil {
			return err
		}
	}

	return nil
}

// module is one that packages are linked from.
type module struct {
	// name is its path and version.
	name string
	dir  string
	// folders of the packages that are linked.
	folders map[string]bool
}

// linkedModules asks Go for the modules of the provider, its own module and the standard library aside.
func linkedModules(ctx context.Context) ([]*module, error) {
	const format = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"

	all := map[string]*module{}

	for _, system := range released {
		list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, ".")
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		list.Stderr = os.Stderr

		listed, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("list the packages that are linked for %s: %w", system, err)
		}

		for line := range strings.Lines(string(listed)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) != 3 { // the standard library
				continue
			}

			if all[fields[0]] == nil {
				all[fields[0]] = &module{name: fields[0], dir: fields[1], folders: map[string]bool{}}
			}

			all[fields[0]].folders[fields[2]] = true
		}
	}

	if len(all) == 0 {
		return nil, errors.New("go list names no modules; run this in the folder of the provider")
	}

	return slices.SortedFunc(maps.Values(all), func(a, b *module) int { return strings.Compare(a.name, b.name) }), nil
}

// The names of files with the text of a license.
var licenseFile = regexp.MustCompile(`(?i)^(un)?li[cs]en[cs]e([.-].*)?$|^copying([.-].*)?$`)

// aside are files that do not concern linked code.
var aside = map[string]string{
	"LICENSE.docs": "of the documentation",
}

// The licenses of the module and of third-party code that it has in folders that are linked.
func (m *module) licenses() ([]string, error) {
	var (
		found    = map[string]bool{}
		problems []error
	)

	for _, folder := range m.withParents() {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}

		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() || !licenseFile.MatchString(name) || strings.HasSuffix(name, ".go") || aside[name] != "" {
				continue
			}

			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return nil, err
			}

			license, err := classify(string(text))
			if err != nil {
				problems = append(problems, fmt.Errorf("  %s: %s: %w", m.name, filepath.Join(folder, name), err))
				continue
			}

			found[license] = true
		}
	}

	if len(found) == 0 && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("  %s: no file with a license in %s", m.name, m.dir))
	}

	return slices.Sorted(maps.Keys(found)), errors.Join(problems...)
}

// withParents are the folders of linked packages and those around them, up to the module's.
func (m *module) withParents() []string {
	all := map[string]bool{m.dir: true}

	for folder := range m.folders {
		for ; len(folder) > len(m.dir); folder = filepath.Dir(folder) {
			all[folder] = true
		}
	}

	return slices.Sorted(maps.Keys(all))
}
