package values_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

func merge(t *testing.T, documents ...string) map[string]any {
	t.Helper()

	merged, _, err := values.Merge(values.Given{Documents: documents})
	if err != nil {
		t.Fatal(err)
	}

	return merged
}

func TestMerge_keepsTypes(t *testing.T) {
	t.Parallel()

	got := merge(t, `
text: ["1e3x", "1e3", '0x10', "007", "1_000", "on", "null", "~", "", " x ", "1.0", "2001-01-01", "=", "<<", "-", "{}", "12e03"]
dates: [2001-01-01, 12:30:45]
numbers: [0, -1, 1000000, 9223372036854775807, 18446744073709551615, 1.5, 1e3, 0x10, 1.0e-7]
switches: [true, on, no]
nothing: [null, ~, ]
empty: {map: {}, list: [], nested: {a: {b: [{}, []]}}}
dotted.key: {"a.b/c": 1, 'with "quotes"': 2, "": 3, 1: one, true: yes}
unicode: "Grüße 😀 \u2028 \t"
literal: |
  a: b
    c

  d
keep: |+
  a

strip: |-
  a
folded: >
  a
  b
`)

	want := map[string]any{
		"text": []any{
			"1e3x", "1e3", "0x10", "007", "1_000", "on", "null", "~", "", " x ", "1.0", "2001-01-01", "=", "<<", "-", "{}",
			"12e03",
		},
		"dates": []any{"2001-01-01", "12:30:45"},
		"numbers": []any{
			0.0, -1.0, 1000000.0, float64(math.MaxInt64), float64(math.MaxUint64), 1.5, 1000.0, 16.0, 1e-7,
		},
		"switches": []any{true, true, false},
		"nothing":  []any{nil, nil},
		"empty": map[string]any{
			"map": map[string]any{}, "list": []any{},
			"nested": map[string]any{"a": map[string]any{"b": []any{map[string]any{}, []any{}}}},
		},
		"dotted.key": map[string]any{"a.b/c": 1.0, `with "quotes"`: 2.0, "": 3.0, "1": "one", "true": true},
		"unicode":    "Grüße 😀 \u2028 \t",
		"literal":    "a: b\n  c\n\nd\n",
		"keep":       "a\n\n",
		"strip":      "a",
		"folded":     "a b\n",
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMerge_order(t *testing.T) {
	t.Parallel()

	got := merge(t,
		"image: {repository: a, tag: '1'}\nlist: [1, 2]\nkind: {a: 1}\nback: null\ngone: {a: 1}\n",
		"", "# nothing\n", "---\n", "null",
		"image: {tag: '2'}\nlist: [3]\nkind: text\nback: {a: 1}\ngone: null\n",
	)

	want := map[string]any{
		"image": map[string]any{"repository": "a", "tag": "2"}, "list": []any{3.0}, "kind": "text",
		"back": map[string]any{"a": 1.0}, "gone": nil,
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMerge_anchorsAndMergeKeys(t *testing.T) {
	t.Parallel()

	got := merge(t, "base: &base {a: 1, b: 2}\nmerged: {<<: *base, b: 3}\nsame: *base\n", "merged: {a: 9}\n")
	one, two, three, nine := 1.0, 2.0, 3.0, 9.0

	want := map[string]any{
		"base": map[string]any{"a": one, "b": two}, "merged": map[string]any{"a": nine, "b": three},
		"same": map[string]any{"a": one, "b": two},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMerge_nullRemovesDefault is why null has to stay in the values.
func TestMerge_nullRemovesDefault(t *testing.T) {
	t.Parallel()

	got := echoed(t, render(t, echoChart(t, chartDefault, echoTemplate), merge(t, "dropped: {a: null}\nreplaced: null\n")))
	want := map[string]any{"kept": 1.0, "dropped": map[string]any{"b": 2.0}}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMerge_namesWhatCannotBeRead(t *testing.T) {
	t.Parallel()

	const good = "a: 1\n"

	for name, test := range map[string]struct {
		text string
		line int
		want string
	}{
		"list":             {"- hunter2\n", 1, "mapping"},
		"text":             {"hunter2", 1, "mapping"},
		"several":          {"a: 1\n---\npassword: hunter2\n", 3, "several documents"},
		"behind an empty":  {"---\n---\npassword: hunter2\n", 3, "several documents"},
		"behind the end":   {"a: 1\n...\nhunter2: 1\n", 3, "several documents"},
		"tab":              {"a:\n\thunter2: 1\n", 2, "tab"},
		"twice":            {"a: 1\nb:\n  - tag: hunter2\n    tag: hunter2\n", 4, `duplicate key "tag"`},
		"twice, as text":   {"1: hunter2\n'1': hunter2\n", 2, `duplicate key "1"`},
		"complex key":      {"? [hunter2]\n: 1\n", 1, "key"},
		"null key":         {"a: 1\nnull: hunter2\n", 2, "null"},
		"anchor":           {"a: *hunter2\n", 1, "anchor"},
		"quote":            {"a: 'hunter2\n", 2, "unclosed"},
		"bracket":          {"a: [hunter2\n", 2, "unclosed"},
		"colon":            {"a: b: hunter2\n", 1, "colon"},
		"indentation":      {"a:\n  - hunter2\n c: d\n", 3, "indentation"},
		"escape":           {`a: "\hunter2"`, 1, "escape"},
		"tag":              {"a: !!int hunter2\n", 0, "tag"},
		"infinite":         {"hunter2: .inf\n", 0, "JSON"},
		"control":          {"a: hunter2\x01\n", 0, "control"},
		"not even unicode": {"a: hunter2\xff\n", 0, "UTF-8"},
		"merge":            {"hunter2: &a 1\nb: {<<: *a}\n", 0, "merge key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for part, given := range map[values.Part]values.Given{
				values.PartDocuments: {Documents: []string{good, test.text, good}},
				values.PartSecret:    {Secret: []string{good, test.text, good}},
			} {
				_, _, err := values.Merge(given)

				var found *values.Error
				if !errors.As(err, &found) {
					t.Fatalf("error %v", err)
				}

				if found.Part != part || found.Index != 1 || found.Line != test.line || !strings.Contains(found.Reason, test.want) {
					t.Errorf("error %v", err)
				}

				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("the error tells what is in the document: %v", err)
				}
			}
		})
	}
}

func TestError_text(t *testing.T) {
	t.Parallel()

	_, _, err := values.Merge(values.Given{Documents: []string{"a: 1", "a: 1\nb: 2\na: 3\n"}})
	if want := `values document 2, line 3: duplicate key "a"`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestMerge_secretDocumentsCountLast(t *testing.T) {
	t.Parallel()

	merged, secrets, err := values.Merge(values.Given{
		Documents: []string{"db: {user: app, password: changeme}\n"},
		Settings: []values.Setting{{Name: "db.password", Value: "set"},
			{Name: "db.token", Value: "abc,def", Type: values.Literal, Sensitive: true}},
		Secret: []string{"db: {password: hunter2}\npin: 4711\nlist: [{key: k3y!}]\non: true\n"},
	})
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]any{
		"db":  map[string]any{"user": "app", "password": "hunter2", "token": "abc,def"},
		"pin": 4711.0, "list": []any{map[string]any{"key": "k3y!"}}, "true": true,
	}
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"abc,def", "hunter2", "4711", "k3y!"}, []string(secrets)); diff != "" {
		t.Error(diff)
	}
}
