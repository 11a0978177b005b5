// Command bench measures what talosop promises about time and memory, on
// simulated machines and under a real CLI. It prints one table that names the
// machine and the versions:
//
//	make bench
//	go run ./tools/bench -only growth -machines 100,500,1000
//	go run ./tools/bench -only peer -machines 20,100,500
//
// It compares a create with the critical path of the machines' own delays, a rolling upgrade with the waves that
// its budget allows, and the life of an addon with that by the real helm. It measures a plan in calls, wall time
// and the provider's peak memory. growth is the life of one talosop_cluster by its size, and machines that of as
// many talosop_machine. peer and start compare with the official provider, which `tools/testbed/build foreign`
// builds.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// figure is a line of the table.
type figure struct {
	measure, value, target string
}

// benchmarks by the names that select them.
var benchmarks = []struct {
	name string
	// always is whether it runs when none is selected, and bySize whether it runs for each size of the cluster.
	always, bySize bool
	run            func(tb testing.TB, size int) []figure
}{
	{"create", true, false, create},
	{"roll", true, false, roll},
	{"noop", true, true, noop},
	{"growth", false, true, growth},
	{"machines", false, true, eachMachine},
	{"peer", false, true, peer},
	{"start", false, false, start},
	{"addon", true, false, addon},
}

func main() {
	testing.Init()

	only := flag.String("only", "", "run only this benchmark: create, roll, noop, growth, machines, peer, start or addon")
	machines := flag.String("machines", "100,500", "sizes in noop, growth, machines and peer, separated by commas")
	flag.Parse()

	// The harness runs acceptance tests; this program is one in that sense.
	if err := os.Setenv("TF_ACC", "1"); err != nil {
		fail(err)
	}

	var figures []figure

	for _, b := range benchmarks {
		if *only != b.name && (*only != "" || !b.always) {
			continue
		}

		if !b.bySize {
			figures = append(figures, measure(b.name, func(tb testing.TB) []figure { return b.run(tb, 0) })...)

			continue
		}

		for _, size := range sizes(*machines) {
			figures = append(figures, measure(fmt.Sprintf("%s of %d", b.name, size),
				func(tb testing.TB) []figure { return b.run(tb, size) })...)
		}
	}

	if len(figures) == 0 {
		fail(fmt.Errorf("-only has %q, which is no benchmark", *only))
	}

	if err := write(os.Stdout, figures); err != nil {
		fail(err)
	}
}

// sizes reads numbers that are separated by commas.
func sizes(text string) []int {
	var all []int

	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 4 {
			fail(fmt.Errorf("-machines has %q, allowed are numbers from 4 on", part))
		}

		all = append(all, n)
	}

	return all
}

// measure runs a benchmark once. A failed one prints the reason and ends the program, because figures of a broken
// run are useless.
func measure(name string, run func(tb testing.TB) []figure) []figure {
	fmt.Fprintf(os.Stderr, "bench: %s …\n", name)

	var figures []figure

	ended := false

	result := testing.Benchmark(func(b *testing.B) {
		if figures == nil {
			figures = run(loud{b})
		}

		ended = true
	})
	if !ended || result.N == 0 || len(figures) == 0 {
		fail(fmt.Errorf("benchmark %s failed", name))
	}

	return figures
}

// loud reports errors at once: [testing.Benchmark] does not.
type loud struct{ *testing.B }

func (l loud) Errorf(format string, args ...any) {
	l.Helper()
	l.Error(fmt.Sprintf(format, args...))
}

func (l loud) Error(args ...any) {
	l.Helper()
	fmt.Fprintln(os.Stderr, append([]any{"bench:"}, args...)...)
	l.B.Error(args...)
}

func (l loud) Fatalf(format string, args ...any) {
	l.Helper()
	l.Fatal(fmt.Sprintf(format, args...))
}

func (l loud) Fatal(args ...any) {
	l.Helper()
	fmt.Fprintln(os.Stderr, append([]any{"bench:"}, args...)...)
	l.B.Fatal(args...)
}

// Skipf fails: a benchmark that runs has a program to measure.
func (l loud) Skipf(format string, args ...any) {
	l.Helper()
	l.Fatalf(format, args...)
}

// write prints the table.
func write(to io.Writer, figures []figure) error {
	var text strings.Builder

	fmt.Fprintf(&text, "\n%s\n\nmeasure\tvalue\ttarget\n", environment())

	for _, f := range figures {
		fmt.Fprintf(&text, "%s\t%s\t%s\n", f.measure, f.value, f.target)
	}

	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}

	return out.Flush()
}

// environment names the machine and the versions that the figures are of.
func environment() string {
	parts := []string{fmt.Sprintf("%d × %s", runtime.NumCPU(), processor()), runtime.Version()}

	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			switch dep.Path {
			case "github.com/siderolabs/talos/pkg/machinery", "github.com/hashicorp/terraform-plugin-framework":
				parts = append(parts, dep.Path[strings.LastIndex(dep.Path, "/")+1:]+" "+dep.Version)
			}
		}
	}

	return strings.Join(append(parts, cliVersion()), ", ")
}

// cliVersion is the first line that the CLI of the measurements says of itself.
func cliVersion() string {
	var b testing.B

	cli := clitest.Any(&b)

	version := exec.CommandContext(context.Background(), cli.Path, "version")
	version.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull)

	out, err := version.Output()
	if err != nil {
		fail(fmt.Errorf("ask %s for its version: %w", cli.Path, err))
	}

	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")

	return first
}

func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}

	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}

	return runtime.GOARCH
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
