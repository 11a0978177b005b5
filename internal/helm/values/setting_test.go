package values_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

func TestSettings_kinds(t *testing.T) {
	t.Parallel()

	base := "list: [{name: a}, {name: b}]\nimage: {tag: '1'}\n"

	for name, test := range map[string]struct {
		setting values.Setting
		path    []any
		want    any
	}{
		"integer":        {values.Setting{Name: "a.b", Value: "1000000"}, []any{"a", "b"}, int64(1000000)},
		"switch":         {values.Setting{Name: "a", Value: "True"}, []any{"a"}, true},
		"null":           {values.Setting{Name: "image.tag", Value: "null"}, []any{"image", "tag"}, nil},
		"leading zero":   {values.Setting{Name: "a", Value: "007", Type: values.Auto}, []any{"a"}, "007"},
		"float":          {values.Setting{Name: "a", Value: "1.5"}, []any{"a"}, "1.5"},
		"empty":          {values.Setting{Name: "a", Value: ""}, []any{"a"}, ""},
		"equals":         {values.Setting{Name: "a", Value: "b=c"}, []any{"a"}, "b=c"},
		"escaped comma":  {values.Setting{Name: "a", Value: `b\,c`}, []any{"a"}, "b,c"},
		"list":           {values.Setting{Name: "a", Value: `{x,1,\}}`}, []any{"a"}, []any{"x", int64(1), "}"}},
		"list item":      {values.Setting{Name: "list[1].name", Value: "c"}, []any{"list", 1, "name"}, "c"},
		"new list item":  {values.Setting{Name: "list[2].name", Value: "c"}, []any{"list", 2, "name"}, "c"},
		"escaped dot":    {values.Setting{Name: `a\.b/c`, Value: "x"}, []any{"a.b/c"}, "x"},
		"escaped equals": {values.Setting{Name: `a\=b`, Value: "x"}, []any{"a=b"}, "x"},
		"text":           {values.Setting{Name: "a", Value: "1000000", Type: values.String}, []any{"a"}, "1000000"},
		"text true":      {values.Setting{Name: "a", Value: "true", Type: values.String}, []any{"a"}, "true"},
		"lines":          {values.Setting{Name: "a", Value: "x\ny\n", Type: values.String}, []any{"a"}, "x\ny\n"},
		"literal": {values.Setting{Name: "a.b", Value: `{a,b\,=.[0]}`, Type: values.Literal}, []any{"a", "b"},
			`{a,b\,=.[0]}`},
		"JSON object": {
			values.Setting{Name: "a", Value: `{"x": [1, 1.5, null, {}]}`, Type: values.JSON},
			[]any{"a", "x"}, []any{1.0, 1.5, nil, map[string]any{}},
		},
		"JSON number": {
			values.Setting{Name: "list[0].n", Value: "18446744073709551615", Type: values.JSON},
			[]any{"list", 0, "n"}, float64(math.MaxUint64),
		},
		"JSON text":    {values.Setting{Name: "a", Value: `"x,y={}\\"`, Type: values.JSON}, []any{"a"}, `x,y={}\`},
		"JSON nothing": {values.Setting{Name: "a", Value: " ", Type: values.JSON}, []any{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			merged, _, err := values.Merge(values.Given{Documents: []string{base}, Settings: []values.Setting{test.setting}})
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, follow(t, merged, test.path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// follow a path of keys and indexes, all of which are there.
func follow(t *testing.T, value any, path []any) any {
	t.Helper()

	for _, step := range path {
		switch at := value.(type) {
		case map[string]any:
			key, isKey := step.(string)
			inner, found := at[key]

			if !isKey || !found {
				t.Fatalf("no %v in %v", step, at)
			}

			value = inner
		case []any:
			index, isIndex := step.(int)
			if !isIndex || index >= len(at) {
				t.Fatalf("no %v in %v", step, at)
			}

			value = at[index]
		default:
			t.Fatalf("no %v in %v", step, at)
		}
	}

	return value
}

func TestSettings_nameWhatIsWrong(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		setting values.Setting
		want    string
	}{
		"comma":           {values.Setting{Name: "a", Value: "hunter2,b"}, "comma"},
		"second setting":  {values.Setting{Name: "a", Value: "1,b=hunter2"}, "comma"},
		"open list":       {values.Setting{Name: "a", Value: "{hunter2"}, "comma"},
		"no name":         {values.Setting{Value: "hunter2"}, "name is empty"},
		"comma in name":   {values.Setting{Name: "a=1,b", Value: "hunter2"}, "several values"},
		"bad index":       {values.Setting{Name: "a[x]", Value: "hunter2"}, "path"},
		"huge index":      {values.Setting{Name: "a[9999999]", Value: "hunter2"}, "path"},
		"below a text":    {values.Setting{Name: "text.b", Value: "hunter2"}, "neither a mapping nor a list"},
		"item of a text":  {values.Setting{Name: "text[0]", Value: "hunter2"}, "neither a mapping nor a list"},
		"not JSON":        {values.Setting{Name: "a", Value: `hunter2`, Type: values.JSON}, "not JSON, at byte 1"},
		"incomplete JSON": {values.Setting{Name: "a", Value: `{"hunter2":`, Type: values.JSON}, "JSON"},
		"two of JSON":     {values.Setting{Name: "a", Value: `1 "hunter2"`, Type: values.JSON}, "after the JSON"},
		"huge number":     {values.Setting{Name: "a", Value: `["hunter2", 1e999]`, Type: values.JSON}, "too large"},
		"literal equals":  {values.Setting{Name: "a=b", Value: "hunter2", Type: values.Literal}, "equals"},
		"unknown type":    {values.Setting{Name: "a", Value: "hunter2", Type: "number"}, "unknown type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, _, err := values.Merge(values.Given{
				Documents: []string{"text: x\n"}, Settings: []values.Setting{{Name: "ok", Value: "1"}, test.setting},
			})

			var found *values.Error
			if !errors.As(err, &found) {
				t.Fatalf("error %v", err)
			}

			if found.Part != values.PartSettings || found.Index != 1 || found.Name != test.setting.Name ||
				!strings.Contains(found.Reason, test.want) {
				t.Errorf("error %v", err)
			}

			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the value: %v", err)
			}
		})
	}
}
