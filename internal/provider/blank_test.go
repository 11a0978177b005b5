package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// blankMeans are the attributes whose empty string has a meaning, by the end of their path, with that meaning. An
// element has the name of its list or map.
var blankMeans = map[string]string{
	"config_patches":                 "an empty patch changes nothing",
	"cluster_config_patches":         "an empty patch changes nothing",
	"replica_config_patches":         "an empty patch changes nothing",
	"addon.values":                   "an empty file of values has none",
	"addon.values_wo":                "an empty file of values has none",
	"set.value":                      "the value of the chart is empty",
	"set_sensitive.value":            "the value of the chart is empty",
	"meta":                           "the value in META is empty",
	"triggers":                       "any text",
	"labels":                         "a label without a value",
	"annotations":                    "an annotation without a value",
	"node_selector":                  "a label without a value",
	"tolerations.value":              "a taint without a value",
	"object.value":                   "the path gives nothing",
	"http.headers":                   "a header without a value",
	"function merge_patches.base":    "an empty patch changes nothing",
	"function merge_patches.patches": "an empty patch changes nothing",
	"function validate_patch.patch":  "an empty patch changes nothing",
}

func meansSomething(where string) bool {
	for end := range blankMeans {
		if strings.HasSuffix(where, "."+end) || strings.HasSuffix(where, "_"+end) || where == end {
			return true
		}
	}

	return false
}

// blankOf is a value of a type in which every string is text, with the paths of the strings; settable reports
// whether configurations set the value.
func blankOf(typ tftypes.Type, text string) tftypes.Value {
	switch {
	case typ.Is(tftypes.String):
		return tftypes.NewValue(typ, text)
	case typ.Is(tftypes.List{}):
		return tftypes.NewValue(typ, []tftypes.Value{blankOf(typ.(tftypes.List).ElementType, text)})
	case typ.Is(tftypes.Set{}):
		return tftypes.NewValue(typ, []tftypes.Value{blankOf(typ.(tftypes.Set).ElementType, text)})
	case typ.Is(tftypes.Map{}):
		return tftypes.NewValue(typ, map[string]tftypes.Value{"x": blankOf(typ.(tftypes.Map).ElementType, text)})
	default:
		return tftypes.NewValue(typ, nil)
	}
}

// blankObject fills every string attribute that a configuration may set.
func blankObject(attributes []*tfprotov6.SchemaAttribute, text string) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}

	for _, a := range attributes {
		switch {
		case !a.Optional && !a.Required:
			values[a.Name] = tftypes.NewValue(a.ValueType(), nil)
		case a.NestedType == nil:
			values[a.Name] = blankOf(a.Type, text)
		default:
			values[a.Name] = blankNested(a, text)
		}
	}

	return values
}

func blankNested(a *tfprotov6.SchemaAttribute, text string) tftypes.Value {
	object := blankObject(a.NestedType.Attributes, text)

	switch typ := a.ValueType().(type) {
	case tftypes.Object:
		return tftypes.NewValue(typ, object)
	case tftypes.List:
		return tftypes.NewValue(typ, []tftypes.Value{tftypes.NewValue(typ.ElementType, object)})
	case tftypes.Map:
		return tftypes.NewValue(typ, map[string]tftypes.Value{"x": tftypes.NewValue(typ.ElementType, object)})
	default:
		panic(fmt.Sprintf("%s is a %s", a.Name, typ))
	}
}

// stringsIn are the paths of the strings in a value.
func stringsIn(t *testing.T, value tftypes.Value) []*tftypes.AttributePath {
	t.Helper()

	var paths []*tftypes.AttributePath

	err := tftypes.Walk(value, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		if v.Type().Is(tftypes.String) && !v.IsNull() {
			paths = append(paths, at)
		}

		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return paths
}

// namesOf are the names of the attributes in a path.
func namesOf(where string, at *tftypes.AttributePath) string {
	for _, step := range at.Steps() {
		if name, ok := step.(tftypes.AttributeName); ok {
			where += "." + string(name)
		}
	}

	return where
}

func errorsAt(diagnostics []*tfprotov6.Diagnostic, at *tftypes.AttributePath) (found []string) {
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError && d.Attribute.Equal(at) {
			found = append(found, d.Summary+": "+d.Detail)
		}
	}

	return found
}

// only is a value reduced to one path.
func only(t *testing.T, value tftypes.Value, kept *tftypes.AttributePath) tftypes.Value {
	t.Helper()

	out, err := tftypes.Transform(value, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if len(at.Steps()) <= len(kept.Steps()) &&
			tftypes.NewAttributePathWithSteps(kept.Steps()[:len(at.Steps())]).Equal(at) {
			return v, nil
		}

		return tftypes.NewValue(v.Type(), nil), nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// validation is one way to validate a configuration.
type validation struct {
	where    string
	schema   *tfprotov6.Schema
	validate func(*tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error)
}

func validations(t *testing.T) []validation {
	t.Helper()

	server, ok := tftest.Server(t).(interface {
		tfprotov6.ProviderServer
		tfprotov6.ActionServer
		tfprotov6.ListResourceServer
	})
	if !ok {
		t.Fatal("the provider serves no actions, or no lists")
	}

	resp, ctx := tftest.Schemas(t), t.Context()
	all := []validation{{"provider", resp.Provider, func(c *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
		r, err := server.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: c})

		return r.Diagnostics, err
	}}}

	for name, s := range resp.ResourceSchemas {
		all = append(all, validation{name, s, func(c *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			r, err := server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: name, Config: c,
				ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true}})

			return r.Diagnostics, err
		}})
	}

	for name, s := range resp.DataSourceSchemas {
		all = append(all, validation{"data " + name, s, func(c *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			r, err := server.ValidateDataResourceConfig(ctx,
				&tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: c})

			return r.Diagnostics, err
		}})
	}

	for name, s := range resp.EphemeralResourceSchemas {
		all = append(all, validation{"ephemeral " + name, s, func(c *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			r, err := server.ValidateEphemeralResourceConfig(ctx,
				&tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: name, Config: c})

			return r.Diagnostics, err
		}})
	}

	for name, s := range resp.ListResourceSchemas {
		all = append(all, validation{"list " + name, s, func(c *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			r, err := server.ValidateListResourceConfig(ctx,
				&tfprotov6.ValidateListResourceConfigRequest{TypeName: name, Config: c})

			return r.Diagnostics, err
		}})
	}

	for name, s := range resp.ActionSchemas {
		all = append(all, validation{"action " + name, s.Schema, func(c *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			r, err := server.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: c})

			return r.Diagnostics, err
		}})
	}

	slices.SortFunc(all, func(a, b validation) int { return strings.Compare(a.where, b.where) })

	return all
}

// Every string of a configuration is refused when it is empty or only spaces, with one error on its path, unless the
// empty string has a meaning.
func TestSchema_refusesBlankStrings(t *testing.T) {
	t.Parallel()

	for _, v := range validations(t) {
		for _, text := range []string{"", " \t"} {
			typ := v.schema.ValueType()
			value := tftypes.NewValue(typ, blankObject(v.schema.Block.Attributes, text))
			config := tftest.Dynamic(t, value)

			diagnostics, err := v.validate(config)
			if err != nil {
				t.Fatal(err)
			}

			for _, at := range stringsIn(t, value) {
				found, where := errorsAt(diagnostics, at), namesOf(v.where, at)
				want := !meansSomething(where)

				// Nested attributes are not checked when their object is invalid by itself.
				if want && len(found) == 0 {
					alone, err := v.validate(tftest.Dynamic(t, only(t, value, at)))
					if err != nil {
						t.Fatal(err)
					}

					found = errorsAt(alone, at)
				}

				if want != (len(found) == 1) && (want || text == "") {
					t.Errorf("%s = %q: %d errors %q", where, text, len(found), found)
				}
			}
		}
	}
}

// Keys of maps are checked too. Blocks given as a whole, and unknown values, are not strings.
func TestValidate_blankKeys(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		config tftest.Config
		want   []string
	}{
		"a machine without a name": {tftest.With(tftest.BaseControlPlane(), tftest.Config{"address": "10.0.0.12"},
			"machines", ""),
			[]string{`AttributeName("machines").ElementKeyString("")`}},
		"a key of META": {tftest.With(tftest.BaseControlPlane(), "x", "machines", "cp-1", "meta", " "),
			[]string{`AttributeName("machines").ElementKeyString("cp-1").AttributeName("meta").ElementKeyString(" ")`}},
		"an empty address beside a wrong version": {
			tftest.With(tftest.With(tftest.BaseControlPlane(), "", "machines", "cp-1", "address"), "1.13", "talos_version"),
			[]string{`AttributeName("machines").ElementKeyString("cp-1").AttributeName("address")`}},
		"an address that is not known": {tftest.With(tftest.BaseControlPlane(), tftest.Unknown{}, "machines", "cp-1",
			"address"), nil},
		"an empty patch": {tftest.With(tftest.BaseControlPlane(), []any{""}, "config_patches"), nil},
	} {
		var got []string

		for _, d := range tftest.Validate(t, "talosop_control_plane", test.config) {
			if d.Severity == tfprotov6.DiagnosticSeverityError {
				got = append(got, d.Attribute.String())
			}
		}

		if !slices.Equal(got, test.want) {
			t.Errorf("%s: errors at %q, want %q", name, got, test.want)
		}
	}
}

// The same holds for arguments of functions.
func TestFunctions_refuseBlankStrings(t *testing.T) {
	t.Parallel()

	server := tftest.Server(t)

	for name, f := range tftest.Schemas(t).Functions {
		parameters := f.Parameters
		if f.VariadicParameter != nil {
			parameters = append(slices.Clone(parameters), f.VariadicParameter)
		}

		for i, p := range parameters {
			for _, text := range []string{"", " "} {
				if !p.Type.Is(tftypes.String) {
					continue
				}

				var arguments []*tfprotov6.DynamicValue

				for j, other := range parameters {
					value := tftypes.NewValue(other.Type, nil)
					if other.Type.Is(tftypes.String) {
						value = tftypes.NewValue(other.Type, "x")
					}

					if i == j {
						value = tftypes.NewValue(other.Type, text)
					}

					argument, err := tfprotov6.NewDynamicValue(other.Type, value)
					if err != nil {
						t.Fatal(err)
					}

					arguments = append(arguments, &argument)
				}

				resp, err := server.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{Name: name, Arguments: arguments})
				if err != nil {
					t.Fatal(err)
				}

				refused := resp.Error != nil && resp.Error.FunctionArgument != nil &&
					*resp.Error.FunctionArgument == int64(i) && strings.Contains(resp.Error.Text, "does not count as omitted")
				if where := "function " + name + "." + p.Name; refused == meansSomething(where) {
					t.Errorf("%s = %q: %v", where, text, resp.Error)
				}
			}
		}
	}
}
