package postrender_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
)

func TestCheck_invalidPatches(t *testing.T) {
	t.Parallel()

	target := &postrender.Target{Kind: "Deployment"}

	for name, test := range map[string]struct {
		patch postrender.Patch
		want  string
	}{
		"empty":         {postrender.Patch{Patch: "# nothing\n", Target: target}, "is empty"},
		"empty object":  {postrender.Patch{Patch: "{}", Target: target}, "changes nothing"},
		"empty list":    {postrender.Patch{Patch: "[]", Target: target}, "changes nothing"},
		"text":          {postrender.Patch{Patch: "text", Target: target}, "neither an object nor a list"},
		"not YAML":      {postrender.Patch{Patch: "a: [", Target: target}, "is not YAML"},
		"key twice":     {postrender.Patch{Patch: "a: 1\na: 2", Target: target}, `"a" already set`},
		"list of texts": {postrender.Patch{Patch: "[a]", Target: target}, "not a list of JSON 6902"},
		"unknown operation": {postrender.Patch{Patch: "[{op: set, path: /a, value: 1}]", Target: target},
			"operation 1: op"},
		"no path": {postrender.Patch{Patch: "[{op: remove}]", Target: target}, "operation 1: path"},
		"relative path": {postrender.Patch{Patch: "[{op: remove, path: /a}, {op: remove, path: a}]", Target: target},
			"operation 2: path"},
		"no value":              {postrender.Patch{Patch: "[{op: add, path: /a}]", Target: target}, "value is missing"},
		"no from":               {postrender.Patch{Patch: "[{op: move, path: /a}]", Target: target}, "from"},
		"operations, no target": {postrender.Patch{Patch: "[{op: remove, path: /a}]"}, "needs a target"},
		"operations and more": {postrender.Patch{Patch: "[{op: remove, path: /a}]\n---\na: 1", Target: target},
			"the only document"},
		"no name": {postrender.Patch{Patch: "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}"},
			"needs a target"},
		"several on a target": {postrender.Patch{Patch: "a: 1\n---\nb: 1", Target: target}, "one document only"},
		"name":                {postrender.Patch{Patch: "a: 1", Target: &postrender.Target{Name: "("}}, "target: name"},
		"kind":                {postrender.Patch{Patch: "a: 1", Target: &postrender.Target{Kind: "["}}, "target: kind"},
		"labels": {postrender.Patch{Patch: "a: 1", Target: &postrender.Target{LabelSelector: "a=b=c"}},
			"label_selector"},
		"annotations": {postrender.Patch{Patch: "a: 1", Target: &postrender.Target{AnnotationSelector: "!!"}},
			"annotation_selector"},
	} {
		good := postrender.Patch{Patch: "[{op: move, from: /a, path: /b}, {op: add, path: /a, value: null}]", Target: target}
		err := postrender.Check([]postrender.Patch{good, test.patch, good})

		var found *postrender.Error
		if !errors.As(err, &found) || found.Index != 1 || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}

	if err := postrender.Check(nil); err != nil {
		t.Errorf("no patches: %v", err)
	}
}
