package provider_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

func TestSchema_everyAttributeIsDescribed(t *testing.T) {
	t.Parallel()

	tftest.EveryAttribute(t, func(where string, a *tfprotov6.SchemaAttribute) {
		text := strings.TrimRight(strings.TrimSuffix(a.Description, tf.TerraformOnly), "*`)")

		switch {
		case a.Description == "":
			t.Errorf("%s has no description", where)
		case a.DescriptionKind != tfprotov6.StringKindMarkdown:
			t.Errorf("%s is not described in Markdown", where)
		case !strings.HasSuffix(text, ".") && !strings.HasSuffix(a.Description, "…"):
			t.Errorf("the description of %s does not end as a sentence: %q", where, a.Description)
		}
	})
}

func TestSchema_everyFunctionIsDescribed(t *testing.T) {
	t.Parallel()

	functions := tftest.Schemas(t).Functions
	if len(functions) != 9 {
		t.Errorf("there are %d functions", len(functions))
	}

	for name, f := range functions {
		parameters := f.Parameters
		if f.VariadicParameter != nil {
			parameters = append(parameters, f.VariadicParameter)
		}

		if f.Summary == "" || !strings.HasSuffix(f.Description, ".") {
			t.Errorf("%s is not described: %q, %q", name, f.Summary, f.Description)
		}

		for _, p := range parameters {
			if !strings.HasSuffix(strings.TrimRight(p.Description, "*`)"), ".") ||
				p.DescriptionKind != tfprotov6.StringKindMarkdown {
				t.Errorf("%s of %s is not described: %q", p.Name, name, p.Description)
			}
		}

		if _, err := os.Stat("../../examples/functions/" + name + "/function.tf"); err != nil {
			t.Error(err)
		}
	}
}

// secretNames are the names that only secrets have.
var secretNames = []string{"secrets", "bundle", "password", "auth", "identity_token", "client_key", "kubeconfig",
	"talosconfig"}

func TestSchema_secretsAreSensitive(t *testing.T) {
	t.Parallel()

	tftest.EveryAttribute(t, func(where string, a *tfprotov6.SchemaAttribute) {
		for _, name := range secretNames {
			// registries.auth is the map that contains credentials; its secret values are marked.
			if strings.TrimSuffix(a.Name, "_wo") == name && a.NestedType == nil && !a.Sensitive {
				t.Errorf("%s is not sensitive", where)
			}
		}
	})
}

// The secrets of a cluster are sensitive in every form of its handle: given, exported or only read.
func TestSchema_secretsOfHandlesAreSensitive(t *testing.T) {
	t.Parallel()

	marked := map[string]int{}

	tftest.EveryAttribute(t, func(where string, a *tfprotov6.SchemaAttribute) {
		for _, name := range []string{"secrets", "config_patches", "password", "client_key"} {
			if a.Name != name || !strings.Contains(where, ".cluster.") {
				continue
			}

			if marked[name]++; !a.Sensitive {
				t.Errorf("%s is not sensitive", where)
			}
		}
	})

	if len(marked) != 4 {
		t.Errorf("found %v in handles", marked)
	}
}

// meanings are what descriptions say about names that mean the same everywhere.
var meanings = map[string]string{
	"host":          "runs the machines as pods|[Hh]ost cluster",
	"mode":          "Platform of the machines",
	"bootstrap":     "bootstraps etcd",
	"on_incomplete": "Default: `warn`",
	"time_zone":     "Default: `UTC`",
	"timeouts":      "How long operations may take",
}

func TestSchema_namesMeanOneThing(t *testing.T) {
	t.Parallel()

	tftest.EveryAttribute(t, func(where string, a *tfprotov6.SchemaAttribute) {
		refers := strings.HasPrefix(a.Description, "See `")
		if meaning, ok := meanings[a.Name]; ok && !refers && !regexp.MustCompile(meaning).MatchString(a.Description) {
			t.Errorf("%s means something else than elsewhere: %s", where, a.Description)
		}

		if a.Name == "timeout" && !strings.Contains(where, "drain") && !strings.Contains(where, "health_checks") &&
			!strings.Contains(where, "hooks") {
			t.Errorf("%s is not in timeouts", where)
		}
	})
}

func TestSchema_hasNoSetsOfObjects(t *testing.T) {
	t.Parallel()

	tftest.EveryAttribute(t, func(where string, a *tfprotov6.SchemaAttribute) {
		if a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSet {
			t.Errorf("%s is a set of objects: its elements have no identity in a plan", where)
		}
	})
}

func TestSchema_resourcesWithMachinesHaveTimeouts(t *testing.T) {
	t.Parallel()

	for name, schema := range tftest.Schemas(t).ResourceSchemas {
		names := map[string]bool{}
		for _, a := range schema.Block.Attributes {
			names[a.Name] = a.Name != "machines" || a.NestedType != nil
		}

		if (names["machines"] || names["control_plane"]) &&
			(!names["timeouts"] || !names["deletion_protection"] || !names["on_destroy"] || !names["on_incomplete"]) {
			t.Errorf("%s has machines and lacks one of timeouts, deletion_protection, on_destroy, on_incomplete", name)
		}
	}
}

// A whole handle has the same type everywhere, and access is a part of that type, so that a resource accepts what
// another one exports.
func TestSchema_handlesFit(t *testing.T) {
	t.Parallel()

	types := map[string]tftypes.Type{}

	tftest.EveryAttribute(t, func(_ string, a *tfprotov6.SchemaAttribute) {
		if a.Name == "cluster" && a.NestedType != nil {
			types[a.ValueType().String()] = a.ValueType()
		}
	})

	all := slices.SortedFunc(maps.Values(types), func(a, b tftypes.Type) int { return len(a.String()) - len(b.String()) })
	if len(all) != 2 || !isPart(all[0], all[1]) {
		t.Errorf("there are to be a handle and a part of it, and there are %d types: %v", len(all), all)
	}
}

// isPart reports whether another object has each attribute of an object, with the same type or a part of it.
func isPart(part, whole tftypes.Type) bool {
	p, ok := part.(tftypes.Object)
	w, also := whole.(tftypes.Object)

	if !ok || !also {
		return part.Equal(whole)
	}

	for name, typ := range p.AttributeTypes {
		if other, there := w.AttributeTypes[name]; !there || !isPart(typ, other) {
			return false
		}
	}

	return true
}

// Resources that take a part of the handle read a former state with a whole one.
func TestSchema_wholeHandlesOfStatesAreRead(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"talosop_addon", "talosop_etcd_backup", "talosop_etcd_backup_schedule"} {
		resp, err := tftest.Server(t).UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
			TypeName: name, RawState: &tfprotov6.RawState{JSON: []byte(`{"cluster": {"name": "prod", "cni": {"name": "none"},
				"pod_cidrs": ["10.0.0.0/8"], "host": {"namespace": "talos", "image": "example.org/talos"}}}`)},
		})
		if err != nil || len(resp.Diagnostics) > 0 {
			t.Fatalf("%s: %v %s", name, err, tftest.Show(resp.Diagnostics))
		}

		state := tftest.Plain(t, tftest.Decoded(t, tftest.TypeOf(t, name), resp.UpgradedState)).(map[string]any)
		if handle := state["cluster"].(map[string]any); handle["name"] != "prod" ||
			handle["host"].(map[string]any)["namespace"] != "talos" {
			t.Errorf("%s: the handle is %v", name, handle)
		}
	}
}

// A write-only attribute is write-only in every resource, and data sources have none.
func TestStore_keysAreWriteOnly(t *testing.T) {
	t.Parallel()

	tftest.EveryAttribute(t, func(where string, a *tfprotov6.SchemaAttribute) {
		switch a.Name {
		case "passphrase", "identities":
			// Those of disks are in the configurations of machines, which each refresh compares: as passwords of registries
			// they are in state, or in the provider block.
			if !strings.HasSuffix(where, ".encryption_keys.passphrase") || !a.Sensitive {
				t.Errorf("%s may be stored", where)
			}
		case "access_key_id", "secret_access_key", "session_token":
			if !strings.HasPrefix(where, "provider") {
				t.Errorf("%s may be stored", where)
			}
		}

		// The handle of a cluster is cluster everywhere, even where all of it is write-only.
		if strings.HasSuffix(a.Name, "_wo") != a.WriteOnly && !strings.Contains(where+".", ".cluster.") {
			t.Errorf("%s: write-only attributes, and no others, end in _wo", where)
		}
	})
}
