package fields

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
)

func TestKinds_areThoseOfTheLibrary(t *testing.T) {
	for _, kind := range Kinds() {
		text := "apiVersion: v1alpha1\nkind: " + kind
		if kind == "v1alpha1" {
			text = "machine: {}"
		}

		if _, err := configloader.NewFromBytes([]byte(text), configloader.WithNoValidation()); err != nil {
			t.Errorf("%s, since 1.%d: %v", kind, Since(kind), err)
		}
	}
}

func TestNewer(t *testing.T) {
	used := parse("10 A\n12 A b\n13 A c.*.d\n14 A list.e\n# a comment\n")

	defer func(table map[string]kind) { kinds = table }(kinds)
	kinds = used

	for _, test := range []struct {
		content any
		minor   uint64
		path    string
		least   uint64
	}{
		{map[string]any{"a": "x"}, 10, "", 0},
		{map[string]any{"b": nil}, 11, "b", 12},
		{map[string]any{"b": "x"}, 12, "", 0},
		{map[string]any{"c": map[string]any{"x": map[string]any{"d": "x"}}}, 12, "c.*.d", 13},
		{map[string]any{"c": map[string]any{"x": map[string]any{"e": "x"}}}, 12, "", 0},
		{map[string]any{"list": []any{"x", map[string]any{"e": "x"}}}, 13, "list.e", 14},
		{map[string]any{"list": []any{}}, 13, "", 0},
	} {
		if path, least := Newer("A", test.content, test.minor); path != test.path || least != test.least {
			t.Errorf("%v for 1.%d: %s since 1.%d, want %s since 1.%d", test.content, test.minor, path, least, test.path, test.least)
		}
	}
}
