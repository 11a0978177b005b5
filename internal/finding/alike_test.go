package finding_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

func TestAlike_inTheOrderOfTheFirst(t *testing.T) {
	t.Parallel()

	var alike finding.Alike[string]

	for _, pair := range [][2]string{{"off", "w-2"}, {"new", "w-1"}, {"off", "w-3"}} {
		alike.Add(pair[0], pair[1])
	}

	var lines []string
	for what, machines := range alike.All() {
		lines = append(lines, finding.Describe(machines)+": "+what)
	}

	if want := []string{"w-2 and w-3: off", "w-1: new"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}
