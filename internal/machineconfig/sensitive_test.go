package machineconfig

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// Variables of programs are hidden in documents of kinds, too, that no row of the table of places names.
func TestOftenSecret_ofKindsWithoutARow(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		path fieldpath.Path
		want bool
	}{
		"a variable":            {fieldpath.Path{"environment", "A"}, true},
		"one of a list":         {fieldpath.Path{"service", "environment", 0}, true},
		"by another name":       {fieldpath.Path{"variables", "A"}, true},
		"by a third":            {fieldpath.Path{"pod", "env", "A"}, true},
		"a word":                {fieldpath.Path{"joinToken"}, true},
		"anything else":         {fieldpath.Path{"address"}, false},
		"the document as whole": {nil, false},
	} {
		if got := oftenSecret("KindOfTomorrow", c.path); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
