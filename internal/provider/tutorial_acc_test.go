//go:build unix

package provider_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var update = flag.Bool("update", false, "write the outputs and times of this run into the tutorial")

const tutorial = "docs/guides/tutorial.md"

// quick are the delays of the machines in the test. Those that users get let them follow the steps; with -update, the
// tutorial gets their times.
const quick = "-install 200ms -pull 100ms -upgrade 500ms -reboot 200ms -boot 200ms -shutdown 50ms -reset 200ms " +
	"-etcd-start 200ms -etcd-join 100ms -etcd-promote 200ms -api-server 200ms -node-register 100ms -node-ready 200ms"

// The commands of the tutorial run in the order of the page, in terminals with nothing that the page does not set up,
// and the outputs that it shows are theirs. Only the clone is this working tree.
func TestAccTutorial_showsWhatItsCommandsPrint(t *testing.T) {
	t.Parallel()
	clitest.Tofu(t)

	root, err := filepath.Abs(repository)
	tftest.Must(t, err)

	page := tftest.ReadFile(t, filepath.Join(repository, tutorial))
	p := &reader{page: parseTutorial(page), terminals: map[string]*terminal{}}
	p.home, err = filepath.EvalSymlinks(t.TempDir())
	tftest.Must(t, err)

	p.env = strangersEnvironment(t, p.home, root)

	for i := range p.page {
		block := &p.page[i]

		switch block.language {
		case "sh":
			p.execute(t, block)
		case "text":
			p.compare(t, block)
		}

		if t.Failed() {
			return
		}
	}

	if *update {
		for _, file := range []string{tutorial, "templates/guides/tutorial.md.tmpl"} {
			path := filepath.Join(repository, file)
			tftest.WriteFile(t, path, rewritten(tftest.ReadFile(t, path), p.page))
		}
	}
}

// strangersEnvironment is that of a user who has Go, git and make. Caches are those of this computer.
func strangersEnvironment(t *testing.T, home, root string) []string {
	t.Helper()

	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")

		return slices.Contains([]string{"KUBECONFIG", "GOBIN", "GOPATH", "PWD", "MFLAGS"}, name) ||
			strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "TALOSOP_") || strings.HasPrefix(name, "MAKE")
	})

	assets := filepath.Dir(clitest.Asset(t, "kubectl"))
	env = append(env, "HOME="+home, "TALOSOP_CACHE="+filepath.Dir(assets), "CLONE="+root, "CHECKPOINT_DISABLE=1")

	for _, name := range []string{"GOENV", "GOCACHE", "GOMODCACHE"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		tftest.Must(t, err)

		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}

	return env
}

// reader is a user who follows the tutorial.
type reader struct {
	page      []tutorialBlock
	home      string
	env       []string
	terminals map[string]*terminal
}

// terminal returns the terminal of a name, and opens it in the folder of the tutorial.
func (r *reader) terminal(t *testing.T, name string) *terminal {
	t.Helper()

	if open := r.terminals[name]; open != nil {
		return open
	}

	folder, setup := filepath.Join(r.home, "talosop-tutorial"), "cd "+filepath.Join(r.home, "talosop-tutorial")
	if name == "" {
		folder, setup = r.home, `git() { ln -s "$CLONE" "${@: -1}"; }`
	}

	if !*update {
		setup += "\n" + `go() { if [ "$1" = run ]; then set -- "$@" ` + quick + `; fi; command go "$@"; }`
	}

	r.terminals[name] = newTerminal(t, folder, r.env, setup)

	return r.terminals[name]
}

// execute types the commands of a block. In the first terminal, it waits for their end.
func (r *reader) execute(t *testing.T, block *tutorialBlock) {
	t.Helper()

	used := r.terminal(t, block.terminal)
	used.shown = len(used.printed())

	if block.terminal != "" {
		used.input(t, block.text)

		return
	}

	started := time.Now()
	failed := used.run(t, block.text)
	block.took = time.Since(started)

	t.Logf("%s: %s", strings.TrimSpace(block.text), block.took.Round(time.Millisecond))

	if failed != block.fails {
		t.Errorf("a command of the page failed (%t, shown %t): %s\n%s", failed, block.fails, block.text,
			used.printed()[used.shown:])
	}
}

// compare finds the output that a block shows. Programs in other terminals go on, so their output may come later.
func (r *reader) compare(t *testing.T, block *tutorialBlock) {
	t.Helper()

	used := r.terminal(t, block.terminal)
	compared := func(context.Context) error { return block.matches(used.lines()) }
	err := compared(t.Context())

	if block.terminal != "" {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()

		err = wait.Until(ctx, 50*time.Millisecond, compared)
	}

	if err != nil && *update {
		block.text, err = block.renewed(used.lines())
	}

	if err != nil {
		t.Errorf("%s: %v\n`go test ./internal/provider -run Tutorial -update` writes the outputs of a run. "+
			"This output is:\n%s", tutorial, err, strings.Join(used.lines(), "\n"))
	}
}
