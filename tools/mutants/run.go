package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// build compiles the tests of a package with all its mutants. No path means that it has no tests.
func (m *mutated) build(ctx context.Context, folder string) (binary string, err error) {
	replaced := map[string]string{}

	for path, content := range m.files {
		replaced[path] = filepath.Join(folder, strconv.Itoa(len(replaced))+".go")
		if err := os.WriteFile(replaced[path], content, 0o600); err != nil {
			return "", err
		}
	}

	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}

	list := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}

	binary = filepath.Join(folder, "tests")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s", "-overlay="+list, "-o", binary, ".")
	build.Dir = m.folder

	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the mutants: %w\n%s", err, out)
	}

	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}

	return binary, nil
}

// aTest is a test of the package, with the mutants that it reaches. What it took is processor time, which depends
// little on what else the machine does.
type aTest struct {
	name    string
	took    time.Duration
	reaches []int
}

// tests are the test binary of a package, with all that it needs to run.
type tests struct {
	binary, folder, scratch string
	all                     []aTest
}

// start runs tests of the binary, in a folder for temporary files that is removed. The limit is one of processor time.
// The other one is for tests that wait forever.
func (t *tests) start(ctx context.Context, limit time.Duration, set string, arguments ...string) (
	out []byte, took time.Duration, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+20*limit)
	defer cancel()

	scratch, err := os.MkdirTemp(t.scratch, "run")
	if err != nil {
		return nil, 0, err
	}

	command := exec.CommandContext(ctx, t.binary, append([]string{"-test.short", "-test.failfast"}, arguments...)...)
	command.Dir = t.folder
	command.Env = append(os.Environ(), "TMPDIR="+scratch, set, fmt.Sprintf("TALOSOP_MUTANT_SECONDS=%.0f", limit.Seconds()))
	command.WaitDelay = time.Second
	out, err = command.CombinedOutput()

	if command.ProcessState != nil {
		took = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}

	return out, took, errors.Join(err, os.RemoveAll(scratch))
}

// explore runs each test once without a mutant.
func (t *tests) explore(ctx context.Context, o options, out io.Writer) error {
	listed, _, err := t.start(ctx, time.Minute, "", "-test.list", "^(Test|Fuzz|Example)")
	if err != nil {
		return fmt.Errorf("list the tests: %w\n%s", err, listed)
	}

	names := slices.DeleteFunc(strings.Fields(string(listed)), o.skip.MatchString)
	found := make([]aTest, len(names))

	var group errgroup.Group

	group.SetLimit(o.parallel)

	for i, name := range names {
		group.Go(func() (err error) {
			found[i], err = t.exploreOne(ctx, name, o.longest)

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return err
	}

	for _, test := range found {
		if test.took > o.longest {
			_, _ = fmt.Fprintf(out, "%s takes longer than %s and is left out\n", test.name, o.longest)
		} else {
			t.all = append(t.all, test)
		}
	}

	slices.SortFunc(t.all, func(a, b aTest) int { return int(a.took - b.took) })

	return nil
}

func (t *tests) exploreOne(ctx context.Context, name string, longest time.Duration) (test aTest, err error) {
	file := filepath.Join(t.scratch, name+".reached")
	out, took, err := t.start(ctx, longest+time.Second, "TALOSOP_MUTANTS_REACHED="+file, "-test.run", "^"+name+"$")
	test = aTest{name: name, took: took}

	switch {
	case test.took > longest:
		return test, ctx.Err()
	case err != nil:
		return test, fmt.Errorf("%s fails without a mutant: %w\n%s", name, err, out)
	}

	reached, err := os.ReadFile(file)
	if err != nil {
		return test, err
	}

	for line := range bytes.Lines(reached) {
		id, err := strconv.Atoi(string(bytes.TrimSpace(line)))
		if err != nil {
			return test, err
		}

		test.reaches = append(test.reaches, id)
	}

	return test, os.Remove(file)
}

// batches are the tests that reach a mutant, the fast ones first. Starting a binary takes time, so fast tests share a
// run.
func (t *tests) batches(id int) (all [][]aTest) {
	var sum time.Duration

	for _, test := range t.all {
		if !slices.Contains(test.reaches, id) {
			continue
		}

		if sum += test.took; len(all) == 0 || sum > time.Second {
			all, sum = append(all, nil), test.took
		}

		all[len(all)-1] = append(all[len(all)-1], test)
	}

	return all
}

// fate is what became of a mutant.
type fate int

const (
	survived fate = iota
	unreached
	killed
)

// try runs the tests that reach a mutant until one fails.
func (t *tests) try(ctx context.Context, m mutant) fate {
	batches := t.batches(m.id)
	if len(batches) == 0 {
		return unreached
	}

	for _, batch := range batches {
		var (
			names []string
			// A change may make tests slower.
			limit = time.Second
		)

		for _, test := range batch {
			names = append(names, regexp.QuoteMeta(test.name))
			limit += 3 * test.took
		}

		chosen := "^(" + strings.Join(names, "|") + ")$"
		if _, _, err := t.start(ctx, limit, fmt.Sprintf("TALOSOP_MUTANT=%d", m.id), "-test.run", chosen); err != nil {
			return killed
		}
	}

	return survived
}

// run tries the mutants, and prints those that survive.
func (m *mutated) run(
	ctx context.Context, some []mutant, known equivalents, o options, out io.Writer,
) (r result, err error) {
	begin := time.Now()

	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return r, err
	}

	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	t := tests{folder: m.folder, scratch: scratch}
	if t.binary, err = m.build(ctx, scratch); err != nil {
		return r, err
	}

	if t.binary != "" {
		if err := t.explore(ctx, o, out); err != nil {
			return r, err
		}
	}

	r = result{name: m.name, all: len(m.mutants), ran: len(some)}
	ends := map[key]bool{} // of documented mutants: whether one survived

	var (
		group errgroup.Group
		mu    sync.Mutex
	)

	group.SetLimit(o.parallel)

	for _, one := range some {
		group.Go(func() error {
			end := t.try(ctx, one)

			mu.Lock()
			defer mu.Unlock()

			r.count(one, end, known, ends, out)

			return ctx.Err()
		})
	}

	err = group.Wait()

	for _, k := range slices.SortedFunc(maps.Keys(ends), func(a, b key) int { return strings.Compare(a.In, b.In) }) {
		if !ends[k] {
			r.noticed++

			_, _ = fmt.Fprintf(out, "%s: documented as equivalent, but a test kills it: %s: %s -> %s\n",
				r.name, k.In, k.Original, k.Mutated)
		}
	}

	r.took = time.Since(begin)

	return r, err
}

// count adds a mutant, and prints one that survives.
func (r *result) count(m mutant, end fate, known equivalents, ends map[key]bool, out io.Writer) {
	_, documented := known.find(m.key)
	if documented {
		ends[m.key] = ends[m.key] || end != killed
	}

	switch {
	case end == killed:
		r.killed++

		return
	case documented:
		r.equivalent++

		return
	case end == unreached:
		r.unreached++
	}

	_, _ = fmt.Fprintf(out, "%s/%s %s: %s -> %s%s\n", r.name, m.place, m.In, m.Original, m.Mutated,
		map[fate]string{unreached: " (no test reaches it)"}[end])
}
