package expansion_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

func zipped(t *testing.T, size int) []byte {
	t.Helper()

	var out bytes.Buffer

	w := gzip.NewWriter(&out)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

func TestGunzip_bounds(t *testing.T) {
	t.Parallel()

	const most = 1 << 16

	for size, fits := range map[int]bool{0: true, 1: true, most - 1: true, most: true, most + 1: false, 100 * most: false} {
		plain, err := expansion.Gunzip(zipped(t, size), most)

		switch {
		case fits && (err != nil || len(plain) != size):
			t.Errorf("%d bytes: %d, %v", size, len(plain), err)
		case !fits && !errors.Is(err, expansion.ErrTooLarge):
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Parts of one input share a budget.
func TestBudget_isShared(t *testing.T) {
	t.Parallel()

	budget := expansion.NewBudget(10)

	if _, err := io.ReadAll(budget.Reader(strings.NewReader("123456"))); err != nil {
		t.Error(err)
	}

	read, err := io.ReadAll(budget.Reader(strings.NewReader("123456")))
	if !errors.Is(err, expansion.ErrTooLarge) || len(read) > 4 {
		t.Errorf("%d bytes, %v", len(read), err)
	}

	if err := expansion.NewBudget(10).Take(-1); !errors.Is(err, expansion.ErrTooLarge) {
		t.Errorf("a negative size: %v", err)
	}
}

// Laughs is YAML of that many levels, each of which repeats the one below it ten times.
func laughs(levels int) string {
	text := &strings.Builder{}
	text.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")

	for n := 1; n < levels; n++ {
		fmt.Fprintf(text, "a%d: &a%d [%s]\n", n, n, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", n-1), 10), ", "))
	}

	return text.String()
}

func repeated(scalar, times int) string {
	return "a: &a " + strings.Repeat("x", scalar) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a, ", times), ", ") + "]\n"
}

func TestCheckYAML(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		text  string
		large bool
	}{
		"no alias":           {"a: 1\n", false},
		"large, no alias":    {"a: [" + strings.Repeat("1, ", 1<<15) + "1]\nb: '& *'\n", false},
		"few aliases":        {"a: &a {b: 1}\nc: *a\nd: {<<: *a}\n", false},
		"four levels":        {laughs(4), false},
		"nine levels":        {laughs(9), true},
		"forty levels":       {laughs(40), true},
		"second document":    {"a: 1\n---\n" + laughs(9), true},
		"long text":          {repeated(20_000, 10_000), true},
		"merged":             {"a: &a {b: &b " + strings.Repeat("x", 20_000) + "}\nc: [" + strings.Repeat("{<<: *a}, ", 10_000) + "]\n", true},
		"key":                {"? &a " + strings.Repeat("x", 20_000) + "\n: 1\nc: [" + strings.Repeat("{*a : 1}, ", 10_000) + "]\n", true},
		"within itself":      {"a: &a [*a, &b 1]\n", true},
		"unreadable":         {"a: [&a 1, *a\n", false},
		"unreadable, former": {"a: \"\\&\" *a\n", false},
		"shell":              {"a: |\n  b && c *\n", false},
		"byte order mark":    {"\ufeff" + repeated(20_000, 10_000), true},
		"flow with tags":     {"a: &a !!str " + strings.Repeat("x", 20_000) + "\nb: [" + strings.Repeat("*a, ", 10_000) + "]\n", true},
	} {
		err := expansion.CheckYAML([]byte(test.text))
		if errors.Is(err, expansion.ErrTooLarge) != test.large || err != nil && !test.large {
			t.Errorf("%s: %v, want too large: %v", name, err, test.large)
		}
	}
}
