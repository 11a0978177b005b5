package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

const (
	// starts is how often each side is started, in turn.
	starts = 15
	// dependencies are so many of the largest ones.
	dependencies = 12

	module   = "github.com/talosop/terraform-provider-talosop"
	megabyte = 1e6
)

// start measures the cost of the provider before it does anything, beside the official one: the time until a CLI
// has its schema, its memory meanwhile, and the size of the program with the share of each large dependency.
func start(tb testing.TB, _ int) []figure {
	tb.Helper()

	official := clitest.Asset(tb, officialProgram)
	ours, theirs := schemaWorkspace(tb, "talosop/talosop"), schemaWorkspace(tb, "siderolabs/talos")
	addOfficial(theirs, official)
	ours.Init()
	theirs.Init()

	var all [2][]took

	for range starts {
		for i, w := range []*clitest.Workspace{ours, theirs} {
			run := w.MustRun("providers", "schema", "-json")
			all[i] = append(all[i], took{wall: run.Took, cpu: run.CPU})
		}
	}

	stop := watch(ours.Dir)
	ours.MustRun("providers", "schema", "-json")
	memory := stop()

	our, their := median(all[0], wallOf), median(all[1], wallOf)
	figures := []figure{
		{"providers schema, beside the official provider", fmt.Sprintf("%.3f s to %.3f s: %.2f; processor %.3f s to %.3f s",
			our.wall.Seconds(), their.wall.Seconds(), our.wall.Seconds()/their.wall.Seconds(), our.cpu.Seconds(),
			their.cpu.Seconds()), "at most 1.20"},
		{"… resident memory meanwhile", fmt.Sprintf("%d MiB", memory.mib), ""},
	}

	return append(figures, programSize(tb)...)
}

func schemaWorkspace(tb testing.TB, source string) *clitest.Workspace {
	tb.Helper()

	w := newWorkspace(tb)
	w.Write("main.tf", fmt.Sprintf("terraform {\n  required_providers {\n    one = { source = %q }\n  }\n}\n", source))

	return w
}

// programSize is the size of the program as it is released, and what the largest dependencies are of it.
func programSize(tb testing.TB) []figure {
	tb.Helper()

	released, whole := filepath.Join(tb.TempDir(), "released"), filepath.Join(tb.TempDir(), "whole")
	command(tb, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", released, module)
	command(tb, "go", "build", "-trimpath", "-o", whole, module)

	info, err := os.Stat(released)
	if err != nil {
		tb.Fatal(err)
	}

	figures := []figure{{"size of the program", fmt.Sprintf("%.1f MB", float64(info.Size())/megabyte), "at most 120 MB"}}

	of := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(command(tb, "go", "tool", "nm", "-size", "-sort", "size", whole)))

	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			continue
		}

		if size, err := strconv.Atoi(fields[1]); err == nil && !strings.EqualFold(fields[2], "b") {
			of[dependency(fields[3])] += size
		}
	}

	largest := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Compare(of[b], of[a]) })
	for _, name := range largest[:min(dependencies, len(largest))] {
		figures = append(figures, figure{"… symbols of " + name, fmt.Sprintf("%.1f MB", float64(of[name])/megabyte), ""})
	}

	return figures
}

// dependency is the module that a symbol is of, as far as its name tells, or the part of the linker's tables.
func dependency(symbol string) string {
	symbol = strings.TrimLeft(strings.TrimPrefix(symbol, "type:"), ".*[]")

	parts := 2 // host and name
	if strings.HasPrefix(symbol, "github.com/") {
		parts = 3
	}

	elements := strings.SplitN(symbol, "/", parts+1)

	switch {
	case strings.HasPrefix(symbol, "runtime.pclntab"):
		return "all, by the lines of their functions"
	case len(elements) == 1 || !strings.Contains(elements[0], "."):
		return "Go itself, and all texts and types without a name"
	case len(elements) > parts:
		elements = elements[:parts]
	default:
		last := len(elements) - 1
		elements[last], _, _ = strings.Cut(elements[last], ".")
	}

	return strings.Join(elements, "/")
}

func command(tb testing.TB, name string, args ...string) []byte {
	tb.Helper()

	run := exec.CommandContext(tb.Context(), name, args...)
	run.Env = append(os.Environ(), "CGO_ENABLED=0")
	run.Stderr = os.Stderr

	out, err := run.Output()
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}

	return out
}
