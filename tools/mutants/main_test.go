package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func arguments() options {
	return options{
		files: regexp.MustCompile(""), skip: regexp.MustCompile("^TestSlow$"), longest: time.Minute, parallel: 4,
		list: filepath.Join("testdata", "equivalent.yml"),
	}
}

func TestCheck_reportsWhatNoTestNotices(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	failed, err := check(t.Context(), []string{"./testdata/example"}, arguments(), &out)
	if err != nil || !failed {
		t.Error(failed, err)
	}

	want, err := os.ReadFile(filepath.Join("testdata", "report.txt"))
	if err != nil {
		t.Fatal(err)
	}

	// Mutants end in any order.
	lines := strings.SplitAfter(regexp.MustCompile(`; \d+s\n`).ReplaceAllString(out.String(), "\n"), "\n")
	slices.Sort(lines)

	if got := strings.Join(lines, ""); got != string(want) {
		t.Errorf("got\n%s", got)
	}
}

func TestCheck_leavesOutSlowTests(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	o := arguments()
	o.sample, o.skip, o.longest = 1, regexp.MustCompile("^$"), time.Second

	if _, err := check(t.Context(), []string{"./testdata/example"}, o, &out); err != nil ||
		!strings.Contains(out.String(), "TestSlow takes longer than 1s and is left out") ||
		!strings.Contains(out.String(), ", a sample of ") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestReadEquivalents_refusesEntriesWithoutReason(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "equivalent.yml")
	if err := os.WriteFile(file, []byte("internal/a:\n  - in: F\n    original: a\n    mutated: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := readEquivalents(file); err == nil || !strings.Contains(err.Error(), "internal/a: F has no reason") {
		t.Error(err)
	}

	if _, err := readEquivalents("equivalent.yml"); err != nil {
		t.Error(err)
	}
}
