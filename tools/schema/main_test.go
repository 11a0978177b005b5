package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// TestAccSchema_agreesWithTheCLIs takes the CLIs as judges: what they print about the provider has to be printed here
// too, value for value. The other way round there may be more, since older CLIs leave out kinds that they do not know.
func TestAccSchema_agreesWithTheCLIs(t *testing.T) {
	var out bytes.Buffer
	if err := write(t.Context(), &out, false); err != nil {
		t.Fatal(err)
	}

	got := schemaOf(t, out.Bytes())

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", "terraform {\n  required_providers {\n    talosop = { source = \"talosop/talosop\" }\n  }\n}\n")
		w.Init()

		for kind, want := range schemaOf(t, []byte(w.MustRun("providers", "schema", "-json").Stdout)) {
			if diff := cmp.Diff(want, got[kind]); diff != "" {
				t.Errorf("%s (-%s +ours):\n%s", kind, cli.Name, diff)
			}
		}
	})
}

// schemaOf decodes a schema file and returns the part about this provider.
func schemaOf(t *testing.T, file []byte) map[string]any {
	t.Helper()

	var decoded struct {
		Schemas map[string]map[string]any `json:"provider_schemas"`
	}

	if err := json.Unmarshal(file, &decoded); err != nil {
		t.Fatal(err)
	}

	for name, schema := range decoded.Schemas {
		if strings.HasSuffix(name, "talosop") {
			return schema
		}
	}

	t.Fatal("the file does not describe the provider")

	return nil
}
