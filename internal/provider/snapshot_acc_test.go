package provider_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// snapshot is what goreleaser built from a commit for this platform.
type snapshot struct {
	archive, version string
	content          []byte
}

// A release build of a commit is reproducible, both CLIs install its archive from a filesystem mirror, and the
// quickstart works with it.
func TestAccSnapshot_installsAndRuns(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_plansNothing")
	t.Parallel()

	key := signingKey(t)
	first, second := snapshotOf(t, key, os.Getenv("GOCACHE")), snapshotOf(t, key, t.TempDir())
	if filepath.Base(first.archive) != filepath.Base(second.archive) || !bytes.Equal(first.content, second.content) {
		t.Errorf("two builds of one commit differ: %s with %x, %s with %x", first.archive, sha256.Sum256(first.content),
			second.archive, sha256.Sum256(second.content))
	}

	if got := strings.TrimSpace(output(t, "", nil, unpacked(t, first), "-version")); got != first.version {
		t.Errorf("the program says that it is %s, and was built as %s", got, first.version)
	}

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.NewWith(t, sim.Options{TalosVersion: machineconfig.CurrentTalos}, 1, 1)

		w := clitest.NewWorkspace(t, cli)
		w.UseArchive(first.archive)
		w.CopyFrom("../../examples/quickstart")
		w.Write("site.auto.tfvars.json", tftest.JSON(t, map[string]any{"endpoint": s.URL, "deletion_protection": false,
			"control_planes": sitetest.Addresses(s.ControlPlane), "workers": sitetest.Addresses(s.Workers)}))
		// A prerelease is installed only by its exact version.
		w.Write("override.tf", fmt.Sprintf("terraform {\n  required_providers {\n    talosop = {\n"+
			"      source  = \"talosop/talosop\"\n      version = %q\n    }\n  }\n}\n", first.version))
		w.Init()

		if printed := w.MustRun("version").Stdout; !strings.Contains(printed, "/talosop/talosop v"+first.version) {
			t.Errorf("the CLI has installed:\n%s", printed)
		}

		w.MustRun("apply", "-auto-approve")

		if empty, output := w.PlanIsEmpty(); !empty {
			t.Errorf("the second plan is not empty:\n%s", output)
		}

		w.MustRun("destroy", "-auto-approve")
	})
}

var (
	systems       = regexp.MustCompile(`(?m)^    goos: .*$`)
	architectures = regexp.MustCompile(`(?m)^    goarch: .*$`)
)

// signingKey makes a key like that of the release environment, and returns the variables that locate it.
func signingKey(t *testing.T) []string {
	t.Helper()

	gpg, err := exec.LookPath("gpg")
	if err != nil {
		t.Skip("gpg, which signs releases, is not on the PATH")
	}

	home, err := os.MkdirTemp("", "gpg") //nolint:usetesting // its agent needs a short path
	tftest.Must(t, err)

	environment := []string{"GNUPGHOME=" + home}

	t.Cleanup(func() {
		output(t, "", environment, "gpgconf", "--kill", "all")
		tftest.Must(t, os.RemoveAll(home))
	})

	output(t, "", environment, gpg, "--batch", "--passphrase", "", "--quick-gen-key", "test", "rsa3072", "sign", "never")

	fingerprint := regexp.MustCompile(`(?m)^fpr:+([0-9A-F]{40}):`).FindStringSubmatch(
		output(t, "", environment, gpg, "--list-keys", "--with-colons"))
	if fingerprint == nil {
		t.Fatal("gpg has no key")
	}

	return append(environment, "GPG_FINGERPRINT="+fingerprint[1])
}

// snapshotOf clones the checked-out commit, and has goreleaser build it for this platform with a separate build
// cache; "" for the shared one.
func snapshotOf(t *testing.T, key []string, cache string) snapshot {
	t.Helper()

	folder := filepath.Join(t.TempDir(), "source")
	output(t, "../..", nil, "git", "clone", "--quiet", ".", folder)

	config := filepath.Join(folder, ".goreleaser.yml")

	content, err := os.ReadFile(config)
	tftest.Must(t, err)

	one := systems.ReplaceAll(content, []byte("    goos: ["+runtime.GOOS+"]"))
	one = architectures.ReplaceAll(one, []byte("    goarch: ["+runtime.GOARCH+"]"))

	if bytes.Equal(one, content) {
		t.Fatalf("%s names no systems", config)
	}

	// Outside the clone, whose tree stays as committed.
	config = filepath.Join(t.TempDir(), "goreleaser.yml")
	tftest.Must(t, os.WriteFile(config, one, 0o600))

	build := exec.CommandContext(t.Context(), clitest.Asset(t, "goreleaser"), "release", "--snapshot", "--config", config,
		"--skip=sbom")
	build.Dir, build.Env = folder, append(os.Environ(), key...)

	if cache != "" {
		build.Env = append(build.Env, "GOCACHE="+cache)
	}

	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("goreleaser: %v\n%s", err, printed)
	}

	var built struct{ Version string }

	content, err = os.ReadFile(filepath.Join(folder, "dist", "metadata.json"))
	tftest.Must(t, err)
	tftest.Must(t, json.Unmarshal(content, &built))

	s := snapshot{version: built.Version, archive: filepath.Join(folder, "dist",
		fmt.Sprintf("terraform-provider-talosop_%s_%s_%s.zip", built.Version, runtime.GOOS, runtime.GOARCH))}
	s.content, err = os.ReadFile(s.archive)
	tftest.Must(t, err)

	list := filepath.Join(folder, "dist", "terraform-provider-talosop_"+built.Version+"_SHA256SUMS")
	output(t, "", key, "gpg", "--verify", list+".sig", list)

	sums, err := os.ReadFile(list)
	tftest.Must(t, err)

	if sum := fmt.Sprintf("%x  %s\n", sha256.Sum256(s.content), filepath.Base(s.archive)); !strings.Contains(string(sums), sum) {
		t.Errorf("the checksums are\n%s", sums)
	}

	return s
}

// unpacked is the program in the archive, which also contains the license.
func unpacked(t *testing.T, s snapshot) string {
	t.Helper()

	archive, err := zip.NewReader(bytes.NewReader(s.content), int64(len(s.content)))
	tftest.Must(t, err)

	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
	}

	slices.Sort(names)

	program := "terraform-provider-talosop_v" + s.version
	if !slices.Equal(names, []string{"LICENSE", program}) {
		t.Fatalf("the archive has %v", names)
	}

	folder := t.TempDir()
	tftest.Must(t, os.CopyFS(folder, archive))

	return filepath.Join(folder, program)
}

// output runs a program in a folder, with additional variables.
func output(t *testing.T, folder string, environment []string, program string, args ...string) string {
	t.Helper()

	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	command.Dir, command.Env = folder, append(os.Environ(), environment...)

	printed, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, printed)
	}

	return string(printed)
}
