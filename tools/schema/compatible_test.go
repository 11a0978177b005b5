package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kept are the schemas of the releases, as `make record-release` keeps them.
const kept = "../../internal/provider/testdata/release/*/schema.json"

// Whatever a release offered works with this build. What is broken on purpose is for a new major version, which begins
// with schemas of its own.
func TestSchema_isCompatibleWithReleases(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob(kept)
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no schema at %s: %v", kept, err)
	}

	now := schemaOf(t, written(t, false))

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for _, line := range breaks(schemaOf(t, content), now) {
			t.Errorf("since %s: %s", filepath.Base(filepath.Dir(file)), line)
		}
	}
}

func written(t *testing.T, bare bool) []byte {
	t.Helper()

	var out bytes.Buffer
	if err := write(t.Context(), &out, bare); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

// A schema that is kept has all but the texts.
func TestWrite_bareHasNoTexts(t *testing.T) {
	t.Parallel()

	if diff := cmp.Diff(withoutTexts(schemaOf(t, written(t, false))), any(schemaOf(t, written(t, true)))); diff != "" {
		t.Error(diff)
	}
}

func withoutTexts(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}

		for name, value := range v {
			if _, text := value.(string); !text || !slices.Contains([]string{"description", "description_kind", "summary"}, name) {
				out[name] = withoutTexts(value)
			}
		}

		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, withoutTexts(value))
		}

		return out
	default:
		return v
	}
}

func TestBreaks_findsEachKind(t *testing.T) {
	t.Parallel()

	// Attributes of one resource, an identity and a function, then and now.
	schema := func(attributes object, version float64) object {
		return object{"resource_schemas": object{"x": object{"version": version, "block": object{"attributes": attributes}}}}
	}
	one := func(a object) object { return schema(object{"a": a}, 1) }
	nested := func(mode string, attributes object) object {
		return one(object{"optional": true, "nested_type": object{"nesting_mode": mode, "attributes": attributes}})
	}
	function := func(types ...any) object {
		parameters := []any{}
		for _, typ := range types {
			parameters = append(parameters, object{"type": typ})
		}

		return object{"functions": object{"f": object{"return_type": "string", "parameters": parameters}}}
	}
	identity := func(attributes object) object {
		return object{"resource_identity_schemas": object{"x": object{"attributes": attributes}}}
	}

	optional, required := object{"type": "string", "optional": true}, object{"type": "string", "required": true}

	for name, test := range map[string]struct {
		kept, now object
		want      string
	}{
		"nothing":          {one(optional), one(optional), ""},
		"less is required": {one(required), one(optional), ""},
		"more is there":    {schema(object{}, 1), one(optional), ""},
		"computed, too":    {one(optional), one(object{"type": "string", "optional": true, "computed": true}), ""},
		"a type":           {one(optional), object{}, "resource x is gone"},
		"an attribute":     {one(optional), schema(object{}, 1), "resource x.a is gone"},
		"required":         {one(optional), one(required), "resource x.a is required"},
		"new and required": {schema(object{}, 1), one(required), "resource x.a is new and required"},
		"another type":     {one(optional), one(object{"type": "number", "optional": true}), "resource x.a has another type"},
		"not to be given":  {one(optional), one(object{"type": "string", "computed": true}), "resource x.a cannot be given any more"},
		"not computed": {one(object{"type": "string", "computed": true, "optional": true}), one(optional),
			"resource x.a is computed no more"},
		"sensitive":        {one(optional), one(object{"type": "string", "optional": true, "sensitive": true}), "resource x.a is sensitive"},
		"a former version": {schema(object{}, 1), schema(object{}, 0), "resource x has an earlier schema version"},
		"nested":           {nested("map", object{"b": optional}), nested("map", object{"b": required}), "resource x.a.b is required"},
		"another nesting":  {nested("map", object{}), nested("list", object{}), "resource x.a has another type"},
		"a function":       {function("string"), object{}, "function f is gone"},
		"a parameter":      {function("string"), function("string", "string"), "function f has other parameters, or another result"},
		"its type":         {function("string"), function("number"), "function f takes another type as parameter 1"},
		"an identity":      {identity(object{"i": object{"type": "string"}}), identity(object{}), "identity x.i is gone"},
		"required for imports": {identity(object{"i": object{"type": "string"}}),
			identity(object{"i": object{"type": "string", "required_for_import": true}}), "identity x.i is required for imports"},
		"another type in an identity": {identity(object{"i": object{"type": "string"}}),
			identity(object{"i": object{"type": "bool"}}), "identity x.i has another type"},
	} {
		if got := strings.Join(breaks(test.kept, test.now), "\n"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
