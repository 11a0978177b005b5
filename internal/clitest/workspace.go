package clitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
)

// Workspace is a folder with a configuration and its state, in which a CLI runs.
type Workspace struct {
	Dir string

	// home is the folder of what belongs to the workspace beside Dir.
	home     string
	t        testing.TB
	cli      CLI
	provider string
	env      []string
	// inside is the prefix of its commands, such as for a network namespace.
	inside []string
	// trace is the file with the log of the commands; "" until it is asked for.
	trace string

	// shown is the CLI's output for the state file of that content.
	shown   *tfjson.State
	shownOf []byte
}

// Result is the result of a command.
type Result struct {
	Args   []string
	Exit   int // -1 when the command was killed by a signal
	Stdout string
	Stderr string
	Took   time.Duration
	// CPU is the processor time of the command and of the providers that it waited for.
	CPU time.Duration
}

// Output is everything the command wrote, standard output first.
func (r Result) Output() string { return r.Stdout + r.Stderr }

// Unwrapped is the output without the frame and the line breaks of diagnostics.
func (r Result) Unwrapped() string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(r.Output())), " ")
}

// NewWorkspace makes an empty workspace that is removed with the test. The first of a test process builds the provider.
func NewWorkspace(tb testing.TB, cli CLI) *Workspace {
	tb.Helper()

	built, err := binary()
	if err != nil {
		tb.Fatal(err)
	}

	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}

	provider := filepath.Join(dir, "terraform-provider-talosop")
	if err := pin(built, provider); err != nil {
		tb.Fatalf("place the provider: %v", err)
	}

	w := &Workspace{Dir: filepath.Join(dir, "work"), home: dir, t: tb, cli: cli, provider: provider}

	config, err := writeMirror(filepath.Join(dir, "mirror"), provider)
	if err != nil {
		tb.Fatalf("write provider mirror: %v", err)
	}

	rc := filepath.Join(dir, "cli.tfrc")
	if err := os.WriteFile(rc, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}

	if err := os.Mkdir(w.Dir, 0o755); err != nil {
		tb.Fatal(err)
	}

	// Nothing of the developer's own settings takes part: TF_LOG, TF_VAR_x, TF_PLUGIN_CACHE_DIR, TF_REATTACH_PROVIDERS.
	w.env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "TF_") })
	w.env = append(w.env, "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "TF_CLI_ARGS=-no-color",
		"CHECKPOINT_DISABLE=1")

	return w
}

// Setenv sets a variable of later commands, such as TF_VAR_patch.
func (w *Workspace) Setenv(name, value string) { w.env = append(w.env, name+"="+value) }

// Inside has later commands begin with a program that runs them, such as `ip netns exec`.
func (w *Workspace) Inside(command ...string) { w.inside = command }

// Environ is the environment of its commands, for programs that run the CLI themselves.
func (w *Workspace) Environ() []string { return slices.Clone(w.env) }

// Write writes a file into the workspace.
func (w *Workspace) Write(name, content string) {
	w.t.Helper()

	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// CopyFrom puts every file of a folder into the workspace, such as an example. Folders in it are left out.
func (w *Workspace) CopyFrom(dir string) {
	w.t.Helper()

	entries, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}

	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}

		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			w.t.Fatal(err)
		}

		w.Write(entry.Name(), string(content))
	}
}

// Example copies a folder below examples into the workspace, with the modules that examples share, and returns the
// workspace of that folder.
func (w *Workspace) Example(examples, folder string) *Workspace {
	w.t.Helper()

	for _, part := range []string{"modules", folder} {
		to := filepath.Join(w.Dir, part)
		if _, err := os.Stat(to); err == nil {
			continue // by another one
		}

		if err := os.CopyFS(to, os.DirFS(filepath.Join(examples, part))); err != nil {
			w.t.Fatal(err)
		}
	}

	return w.At(folder)
}

// At is the workspace of a folder of this one, such as that of the second of two root modules.
func (w *Workspace) At(folder string) *Workspace {
	at := *w
	at.Dir, at.env = filepath.Join(w.Dir, folder), slices.Clone(w.env)
	at.shown, at.shownOf = nil, nil

	return &at
}

// Read returns the content of the files of the workspace whose names match a pattern, one after the other.
func (w *Workspace) Read(pattern string) string {
	w.t.Helper()

	paths, err := filepath.Glob(filepath.Join(w.Dir, pattern))
	if err != nil {
		w.t.Fatal(err)
	}

	var text strings.Builder

	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}

		text.Write(content)
	}

	return text.String()
}

// checksums are those of a provider in a lock file.
var checksums = regexp.MustCompile(`(?s)  hashes = \[.*?\]\n`)

// Init installs the provider from the mirror; the test fails when it cannot. The lock file loses the checksums: with
// them each command reads the whole provider before it starts it, which costs more than all else that it does.
func (w *Workspace) Init() {
	w.t.Helper()
	w.MustRun("init")

	lock := filepath.Join(w.Dir, ".terraform.lock.hcl")

	content, err := os.ReadFile(lock)
	if err == nil {
		err = os.WriteFile(lock, checksums.ReplaceAll(content, nil), 0o600)
	}

	if err != nil && !errors.Is(err, os.ErrNotExist) { // without a provider there is none
		w.t.Fatal(err)
	}
}

// Run runs a command to its end, whatever its exit status, and logs a line about it.
func (w *Workspace) Run(args ...string) Result {
	w.t.Helper()

	return w.Start(args...).Wait()
}

// MustRun is Run; the test fails with the command's output when it does not exit with 0.
func (w *Workspace) MustRun(args ...string) Result {
	w.t.Helper()

	result := w.Run(args...)
	if result.Exit != 0 {
		w.t.Fatalf("%s %s: exit status %d\n%s", w.cli.Name, strings.Join(args, " "), result.Exit, result.Output())
	}

	return result
}

// PlanIsEmpty plans with a refresh and says whether nothing would change; a plan that fails fails the test.
func (w *Workspace) PlanIsEmpty() (empty bool, output string) {
	w.t.Helper()

	result := w.Run("plan", "-detailed-exitcode")
	if result.Exit != 0 && result.Exit != 2 {
		w.t.Fatalf("%s plan: exit status %d\n%s", w.cli.Name, result.Exit, result.Output())
	}

	return result.Exit == 0, result.Output()
}

// State returns what `show -json` says of the state. The CLI is asked once for a state file: it starts the provider to
// answer.
func (w *Workspace) State() *tfjson.State {
	w.t.Helper()

	content, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}

	if w.shown != nil && bytes.Equal(content, w.shownOf) {
		return w.shown
	}

	var state tfjson.State
	if err := json.Unmarshal([]byte(w.MustRun("show", "-json").Stdout), &state); err != nil {
		w.t.Fatalf("read state: %v", err)
	}

	w.shown, w.shownOf = &state, content

	return w.shown
}

// Attribute returns a value of a resource in the state, such as Attribute("talosop_control_plane.this", "phase"), and
// nil when the resource or the attribute is not there.
func (w *Workspace) Attribute(address, name string) any {
	w.t.Helper()

	values := w.State().Values
	if values == nil || values.RootModule == nil {
		return nil
	}

	for _, r := range values.RootModule.Resources {
		if r.Address == address {
			return r.AttributeValues[name]
		}
	}

	return nil
}

// Resources returns the addresses in the state of the root module, sorted.
func (w *Workspace) Resources() []string {
	w.t.Helper()

	var addresses []string

	if values := w.State().Values; values != nil && values.RootModule != nil {
		for _, r := range values.RootModule.Resources {
			addresses = append(addresses, r.Address)
		}
	}

	slices.Sort(addresses)

	return addresses
}

// KeepTrace makes every later command log at level TRACE. That costs a tenth of the processor time of a test of
// the CLIs (40 s instead of 36 for five of them), so only tests that read the log use it.
func (w *Workspace) KeepTrace() *Workspace {
	w.trace = filepath.Join(w.home, "trace.log")
	w.env = append(w.env, "TF_LOG=TRACE", "TF_LOG_PATH="+w.trace)

	return w
}

// Trace returns the log at level TRACE of every command since KeepTrace, the provider's lines included.
func (w *Workspace) Trace() string {
	w.t.Helper()

	if w.trace == "" {
		w.t.Fatal("no log was kept: call KeepTrace before the commands")
	}

	content, err := os.ReadFile(w.trace)
	if err != nil {
		w.t.Fatal(err)
	}

	return string(content)
}
