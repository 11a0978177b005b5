package clitest

import (
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// CLI is a program that runs providers.
type CLI struct {
	Name string // terraform or tofu
	Path string
}

// Each runs f as a subtest for each CLI of this machine, as All returns them.
func Each(t *testing.T, f func(t *testing.T, cli CLI)) {
	t.Helper()

	for _, cli := range All(t) {
		t.Run(cli.Name, func(t *testing.T) { f(t, cli) })
	}
}

// All returns the CLIs of this machine: tofu when it was built, terraform when it is on the PATH or was built. It skips
// the test without TF_ACC, and when there is no CLI at all; with TALOSOP_REQUIRE_ASSETS a missing tofu fails it.
func All(tb testing.TB) []CLI {
	tb.Helper()

	if os.Getenv("TF_ACC") == "" {
		tb.Skip("acceptance test: set TF_ACC=1, or run `make testacc`")
	}

	var clis []CLI
	if path := find("tofu"); path != "" {
		clis = append(clis, CLI{Name: "tofu", Path: path})
	}

	path, err := exec.LookPath("terraform")
	if err != nil {
		path = find("terraform")
	}

	if path != "" {
		clis = append(clis, CLI{Name: "terraform", Path: path})
	}

	if len(clis) == 0 || testenv.AssetsRequired() {
		Asset(tb, "tofu")
	}

	return clis
}

// One returns one of the CLIs of this machine for what is the provider's alone: always the same one for a test, and
// half of the tests under each.
func One(tb testing.TB) CLI {
	tb.Helper()

	clis := All(tb)

	return clis[crc32.ChecksumIEEE([]byte(tb.Name()))%uint32(len(clis))] //nolint:gosec // there are two
}

// Any returns one CLI of this machine, for tests where the two cannot differ. It skips or fails like All.
func Any(tb testing.TB) CLI {
	tb.Helper()

	return All(tb)[0]
}

// Newest returns the newest Terraform, for what older ones and OpenTofu lack: actions, queries. It skips or fails like
// Asset.
func Newest(tb testing.TB) CLI {
	tb.Helper()

	if os.Getenv("TF_ACC") == "" {
		tb.Skip("acceptance test: set TF_ACC=1, or run `make testacc`")
	}

	return CLI{Name: "terraform", Path: Asset(tb, filepath.Join("terraform-current", "terraform"))}
}

// Tofu returns OpenTofu, for what Terraform lacks: encryption of state. It skips or fails like Asset.
func Tofu(tb testing.TB) CLI {
	tb.Helper()

	if os.Getenv("TF_ACC") == "" {
		tb.Skip("acceptance test: set TF_ACC=1, or run `make testacc`")
	}

	return CLI{Name: "tofu", Path: Asset(tb, "tofu")}
}

// Asset returns the path of a program that tools/testbed/build makes: such as etcd, talosctl or tofu. Without it the
// test is skipped, or fails when TALOSOP_REQUIRE_ASSETS is set.
func Asset(tb testing.TB, name string) string {
	tb.Helper()

	path := find(name)
	if path != "" {
		return path
	}

	const hint = "run `make testbed` and set TALOSOP_TEST_ASSETS to the output of `tools/testbed/build --dir`, or run " +
		"`make test`"
	if testenv.AssetsRequired() {
		tb.Fatalf("%s is missing: %s", name, hint)
	}

	tb.Skipf("%s is missing: %s", name, hint)

	return ""
}

// find returns the path of a program in the assets folder, or "".
func find(name string) string {
	dir := os.Getenv("TALOSOP_TEST_ASSETS")
	if dir == "" {
		return ""
	}

	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}

	return path
}
