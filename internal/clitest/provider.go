package clitest

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// Provider is the program under test.
func (w *Workspace) Provider() string { return w.provider }

// AddProvider has the CLI of a workspace install another provider, too, from a program that is built already. source is
// namespace and type, such as siderolabs/talos.
func (w *Workspace) AddProvider(source, version, program string) {
	w.t.Helper()

	mirror := filepath.Join(w.home, "mirror")
	if err := mirrored(mirror, source, version, program); err != nil {
		w.t.Fatalf("place the provider %s: %v", source, err)
	}
}

// UseArchive makes the CLI of a workspace install the provider from the archive of a release, instead of the test
// build.
func (w *Workspace) UseArchive(archive string) {
	w.t.Helper()

	content, err := os.ReadFile(archive)
	if err != nil {
		w.t.Fatal(err)
	}

	for _, host := range hosts {
		folder := filepath.Join(w.home, "mirror", host, source)
		if err := os.RemoveAll(folder); err != nil {
			w.t.Fatal(err)
		}

		if err := os.Mkdir(folder, 0o755); err != nil {
			w.t.Fatal(err)
		}

		if err := os.WriteFile(filepath.Join(folder, filepath.Base(archive)), content, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Version is the version under which the provider lies in the mirror.
const Version = "0.0.1"

// source is the provider's address without its host; each CLI puts its own registry before it.
const source = "talosop/talosop"

// hosts are the registries of the CLIs: terraform's and OpenTofu's default.
var hosts = []string{"registry.terraform.io", "registry.opentofu.org"}

// binary builds the provider once per test process and returns its path. TALOSOP_PROVIDER names one that is built
// already. A file of one checkout stays at one place between runs, so that an unchanged provider is not linked again.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("TALOSOP_PROVIDER"); path != "" {
		return filepath.EvalSymlinks(path)
	}

	root, err := Repository()
	if err != nil {
		return "", err
	}

	dir, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", err
	}

	path := filepath.Join(dir, fmt.Sprintf("talosop-clitest-%d-%x", os.Getuid(), crc32.ChecksumIEEE([]byte(root))),
		"terraform-provider-talosop")

	build := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path,
		".")
	build.Dir = root

	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build provider: %w\n%s", err, out)
	}

	return path, nil
})

// Repository returns the folder of the module that the test belongs to, where examples and guides are.
func Repository() (string, error) {
	out, err := exec.CommandContext(context.Background(), "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module's folder: %w", err)
	}

	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// pin gives a workspace a separate provider, which a build of another test process does not exchange under the CLI's
// checksums.
func pin(binary, path string) error {
	if err := os.Link(binary, path); err == nil {
		return nil
	}

	// Another file system.
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}

	return os.WriteFile(path, content, 0o700)
}

// writeMirror puts the provider into a filesystem mirror below dir and returns the text of a CLI configuration
// that installs only from it. Unlike dev_overrides, a mirror uses init, locks and the checksums, as on a user's
// machine.
func writeMirror(dir, provider string) (string, error) {
	if err := mirrored(dir, source, Version, provider); err != nil {
		return "", err
	}

	return fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", dir), nil
}

// mirrored lays a provider into a filesystem mirror, under the registries of both CLIs.
func mirrored(dir, source, version, program string) error {
	for _, host := range hosts {
		folder := filepath.Join(dir, host, source, version, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}

		name := "terraform-provider-" + filepath.Base(source) + "_v" + version
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			return err
		}
	}

	return nil
}
