package openmetrics_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/openmetrics"
)

// testFamilies are a gauge with a unit and labels that need escaping, and one without samples.
func testFamilies() []openmetrics.Family {
	f := openmetrics.Family{Name: "talosop_test_seconds", Help: "A \"test\"\nof \\ text.", Unit: "seconds",
		Labels: []string{"cluster", "machine"}}
	f.Add(1.5, "prod", "a\"b\\c\nd")
	f.Add(0, "prod", "w-1")
	f.Add(9, "prod", "w-1")

	return []openmetrics.Family{f, {Name: "talosop_empty", Help: "None."}}
}

// The text has type, unit and escaped labels, each sample once, and an end. What was written is read again.
func TestText_isReadAgain(t *testing.T) {
	t.Parallel()

	const want = `# HELP talosop_test_seconds A \"test\"\nof \\ text.
# TYPE talosop_test_seconds gauge
# UNIT talosop_test_seconds seconds
talosop_test_seconds{cluster="prod",machine="a\"b\\c\nd"} 1.5
talosop_test_seconds{cluster="prod",machine="w-1"} 0.0
# EOF
`

	families := testFamilies()

	text, err := openmetrics.Text(families)
	if err != nil || text != want {
		t.Fatalf("error %v, text is\n%s\nwant\n%s", err, text, want)
	}

	got, err := openmetrics.Samples(text, families)
	if err != nil || !reflect.DeepEqual(got, families) {
		t.Errorf("error %v, read %v, want %v", err, got, families)
	}
}

// Text that is not valid UTF-8 is replaced.
func TestText_invalidUTF8(t *testing.T) {
	t.Parallel()

	f := openmetrics.Family{Name: "talosop_test", Help: "Test.", Labels: []string{"machine"}}
	f.Add(openmetrics.Of(true), "w\xff")

	text, err := openmetrics.Text([]openmetrics.Family{f})
	if err != nil || !strings.Contains(text, "machine=\"w�\"} 1.0\n") {
		t.Errorf("error %v, text is\n%s", err, text)
	}
}

func TestSamples_refusesOtherFiles(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"hello world\n", "node_load1 1\n",
		"# TYPE talosop_test_seconds counter\ntalosop_test_seconds{cluster=\"a\",machine=\"b\"} 1\n",
		"# TYPE talosop_test_seconds gauge\ntalosop_test_seconds{cluster=\"a\"} 1\n",
		"# TYPE talosop_test_seconds gauge\ntalosop_test_seconds{cluster=\"a\",pod=\"b\"} 1\n",
	} {
		if got, err := openmetrics.Samples(text, testFamilies()); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}
