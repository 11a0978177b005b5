package workload

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// A key with a dot in it is one key: nothing is taken for a part of the pod template that is not, and the text has all
// of it.
func TestDifference_keysWithDots(t *testing.T) {
	t.Parallel()

	set := Ref{Kind: "StatefulSet", Namespace: "p", Name: "dev-cp-0"}
	labels := func(key, value string) map[string]any {
		return map[string]any{"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}}}
	}

	found := objects.Differences(labels("talosop.dev/role", "x"), labels("talosop.dev/role", "worker"))
	if len(found) != 1 {
		t.Fatalf("there are %+v", found)
	}

	d := fieldDifference(set, found[0], nil)
	if n := len(d.Path); n != 5 || d.Path[n-1] != "talosop.dev/role" || !d.ofTemplate() {
		t.Errorf("the path is %q, of the template: %t", d.Path, d.ofTemplate())
	}

	const want = `StatefulSet p/dev-cp-0: spec.template.metadata.labels.talosop.dev/role is "x" instead of "worker"`
	if d.String() != want {
		t.Errorf("it is reported as %s\nwant %s", d, want)
	}

	other := objects.Difference{Keys: []string{"metadata", "annotations", "spec.template.x"}, Found: `"a"`}
	if fieldDifference(set, other, nil).ofTemplate() {
		t.Error("an annotation is taken for a part of the template")
	}
}
