// Command mutants changes the decisions of packages, one at a time, and reports the changes that no test of the package
// notices.
//
//	mutants [-sample N] [-seed S] [-files NAMES] [-skip TESTS] [-longest TIME] [-parallel N] [-least PERCENT] PACKAGE...
//
// A mutant is one small change: a negated comparison, another bound, an error that is not returned, a statement that is
// gone. All mutants of a package are in one test binary, and a switch in the environment selects one (switch.go.txt):
// the package compiles once. Each test runs once without a mutant, to learn which mutants it reaches. Then each mutant
// runs only with the tests that reach it, the fast ones first. A test that fails or does not end kills the mutant.
//
// Other programs for Go compile the package again for each mutant, or run all tests of the package for each.
//
// equivalent.yml has the mutants that no test can notice, each with its reason. An entry that matches no mutant, or
// whose mutant a test kills, is an error.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"
)

// options are the arguments of the command.
type options struct {
	sample   int
	seed     uint64
	files    *regexp.Regexp
	skip     *regexp.Regexp
	longest  time.Duration
	parallel int
	least    float64
	list     string
}

func main() {
	log.SetFlags(0)

	var o options

	files := flag.String("files", "", "regular expression of the files with mutants; all (default)")
	skip := flag.String("skip", "^$", "regular expression of tests that do not run")
	flag.IntVar(&o.sample, "sample", 0, "number of mutants of each package; 0: all")
	flag.Uint64Var(&o.seed, "seed", 1, "selects the sample")
	flag.DurationVar(&o.longest, "longest", 10*time.Second, "tests that take more processor time do not run")
	flag.IntVar(&o.parallel, "parallel", 2, "mutants that run at a time")
	flag.Float64Var(&o.least, "least", 0, "fail if fewer percent of a package's mutants are killed")
	flag.StringVar(&o.list, "equivalent", "tools/mutants/equivalent.yml", "file with the mutants that no test can notice")
	flag.Parse()

	o.files = regexp.MustCompile(*files)
	o.skip = regexp.MustCompile(*skip)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failed, err := check(ctx, flag.Args(), o, os.Stdout)

	stop()

	if err != nil {
		log.Fatal(err)
	}

	if failed {
		log.Fatal("tests miss changes of the code; see above")
	}
}

// check runs the mutants of packages, and reports whether one has too many that survive.
func check(ctx context.Context, patterns []string, o options, out io.Writer) (failed bool, err error) {
	known, err := readEquivalents(o.list)
	if err != nil {
		return false, err
	}

	packages, err := load(patterns, o.files)
	if err != nil {
		return false, err
	}

	for _, p := range packages {
		entries := known[p.name]

		stale := entries.stale(p)
		for _, e := range stale {
			_, _ = fmt.Fprintf(out, "%s: %s: no such mutant: %s -> %s\n", o.list, e.In, e.Original, e.Mutated)
		}

		result, err := p.run(ctx, sampleOf(p.mutants, o), entries, o, out)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.name, err)
		}

		_, _ = fmt.Fprintln(out, result)

		failed = failed || len(stale) > 0 || result.noticed > 0 || result.percent() < o.least
	}

	return failed, nil
}

func sampleOf(all []mutant, o options) []mutant {
	if o.sample == 0 || o.sample >= len(all) {
		return all
	}

	random := rand.New(rand.NewPCG(o.seed, 0))

	var some []mutant
	for _, i := range random.Perm(len(all))[:o.sample] {
		some = append(some, all[i])
	}

	slices.SortFunc(some, func(a, b mutant) int { return a.id - b.id })

	return some
}

// result counts the mutants of a package.
type result struct {
	name              string
	all, ran          int
	killed, unreached int
	// equivalent are documented; noticed are documented but killed.
	equivalent, noticed int
	took                time.Duration
}

// percent is the part of the mutants killed, without the equivalent ones.
func (r result) percent() float64 {
	if r.ran == r.equivalent {
		return 100
	}

	return 100 * float64(r.killed) / float64(r.ran-r.equivalent)
}

func (r result) String() string {
	text := fmt.Sprintf("%s: %d of %d mutants killed (%.1f %%)", r.name, r.killed, r.ran-r.equivalent, r.percent())
	if r.ran < r.all {
		text += fmt.Sprintf(", a sample of %d", r.all)
	}

	return text + fmt.Sprintf("; no test reaches %d; %d are equivalent; %s", r.unreached, r.equivalent,
		r.took.Round(time.Second))
}
