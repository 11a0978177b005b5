package documents

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

func TestParse_byDocument(t *testing.T) {
	t.Parallel()

	got, err := Parse("# comment\nmachine:\n  type: worker\n  sysctls: {a: \"1\", since: 2024-01-02}\n  ports: [80, " +
		"8080]\n  on: true\n  none: null\n  1: one\n  half: 0.5\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: " +
		"EPHEMERAL\nx: &x {a: 1}\ny: *x\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: w-1\n---\n# nothing\n")
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]any{
		"v1alpha1": map[string]any{"machine": map[string]any{
			"type": "worker", "sysctls": map[string]any{"a": "1", "since": "2024-01-02"}, "ports": []any{80, 8080},
			"on": true, "none": nil, "1": "one", "half": 0.5,
		}},
		"VolumeConfig/EPHEMERAL": map[string]any{
			"apiVersion": "v1alpha1", "kind": "VolumeConfig", "name": "EPHEMERAL",
			"x": map[string]any{"a": 1}, "y": map[string]any{"a": 1},
		},
		"HostnameConfig": map[string]any{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "hostname": "w-1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	if got, err := Parse(""); err != nil || len(got) != 0 {
		t.Errorf("nothing is %v, %v", got, err)
	}
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"machine: [hunter2":               "invalid YAML in document 1",
		"hunter2":                         "a document that is not a mapping",
		"- hunter2":                       "a document that is not a mapping",
		"machine: {}\n---\ncluster: {}\n": "the document v1alpha1 twice",
		"kind: A\nname: x\n---\nkind: A\nname: x\n": "the document A/x twice",
		"machine: {0: hunter2, 0.0: b}":             "two keys that are equal as strings",
	} {
		_, err := Parse(text)

		var wrong *machineconfig.FieldError
		if !errors.As(err, &wrong) || wrong.Field != "config" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}

		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a value is quoted: %v", err)
		}
	}
}
