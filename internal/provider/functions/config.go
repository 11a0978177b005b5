package functions

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/documents"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// patchFormat is what patches may be.
const patchFormat = "A patch is YAML: documents to merge, or a list of JSON 6902 operations; an empty one changes " +
	"nothing."

func mergePatches() pure {
	return pure{
		name: "merge_patches", mayBeBlank: []string{"base", "patches"},
		definition: function.Definition{
			Summary: "Merge configuration patches as Talos does",
			MarkdownDescription: "Merges patches, in order, into a machine configuration or one patch as Talos does: maps " +
				"merge, lists append or merge by name, scalars replace. Deletions (`$patch: delete`) and JSON 6902 patches " +
				"need a whole machine configuration as `base`, with its role and token. The result contains only fields of the " +
				"arguments.",
			Parameters: []function.Parameter{function.StringParameter{
				Name: "base",
				MarkdownDescription: "Machine configuration or patch to merge the others into, as YAML with one or more " +
					"documents.",
			}},
			VariadicParameter: function.StringParameter{
				Name:                "patches",
				MarkdownDescription: "Patches in the order in which they apply. " + patchFormat,
			},
			Return: function.StringReturn{},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var (
				base    string
				patches []string
			)

			if err := get(ctx, arguments, &base, &patches); err != nil {
				return nil, err
			}

			merged, err := machineconfig.Merge(base, patches)

			return types.StringValue(merged), err
		},
	}
}

func validatePatch() pure {
	return pure{
		name: "validate_patch", mayBeBlank: []string{"patch"},
		definition: function.Definition{
			Summary: "Check a configuration patch",
			MarkdownDescription: "Returns `true` for a well-formed patch: the Talos version supports its documents, fields, " +
				"value types and form. Any other patch is an error with the reason, so the function works as the `condition` " +
				"of a variable validation.",
			Parameters: []function.Parameter{
				function.StringParameter{Name: "patch", MarkdownDescription: "The patch. " + patchFormat},
				function.StringParameter{
					Name: "talos_version", AllowNullValue: true,
					MarkdownDescription: "Talos version or version contract of the cluster, such as `" +
						machineconfig.CurrentTalos + "` or `v1.14`. From " +
						"v1.12, configurations have several documents and take no JSON 6902 patches. `null` allows every form, and " +
						"the fields of any supported version.",
				},
			},
			Return: function.BoolReturn{},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var (
				patch   string
				version types.String
			)

			if err := get(ctx, arguments, &patch, &version); err != nil {
				return nil, err
			}

			talos, err := talosOf(version)
			if err != nil {
				return nil, err
			}

			if err := machineconfig.ValidatePatchFor(patch, talos); err != nil {
				return nil, named("patch", err)
			}

			return types.BoolValue(true), nil
		},
	}
}

// talosOf is a version, the first one of a contract, or nil.
func talosOf(version types.String) (*machineconfig.TalosVersion, error) {
	text := machineconfig.CanonicalVersion(version.ValueString())

	switch {
	case version.IsNull():
		return nil, nil
	case strings.Count(text, ".") == 1:
		text += ".0"
	}

	parsed, err := machineconfig.ParseTalosVersion(text)
	if err != nil {
		return nil, err
	}

	return &parsed, nil
}

// named adds a field to mistakes without one.
func named(field string, err error) error {
	for _, mistake := range machineconfig.FieldErrors(err) {
		mistake.Field = cmp.Or(mistake.Field, field)
	}

	return err
}

// changeType is one difference between two configurations.
var changeType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"document": types.StringType, "path": types.StringType, "action": types.StringType, "before": types.StringType,
	"after": types.StringType, "text": types.StringType,
}}

func machineConfigDiff() pure {
	return pure{
		name: "machine_config_diff",
		definition: function.Definition{
			Summary: "Compare two machine configurations",
			MarkdownDescription: "Lists the differences between two machine configurations: `document`, `path`, `action` " +
				"(`added`, `removed` or `changed`), `before`, `after`, and one line of `text`. Comments, order and spelling " +
				"are not differences. `(sensitive value)` replaces secrets and fields that often hold them, as in plans, so " +
				"`nonsensitive()` is safe.",
			Parameters: []function.Parameter{
				function.StringParameter{
					Name: "before", AllowNullValue: true,
					MarkdownDescription: "Machine configuration, YAML with one or more documents; `null` for none.",
				},
				function.StringParameter{
					Name: "after", AllowNullValue: true,
					MarkdownDescription: "The configuration to compare with; `null` for none.",
				},
			},
			Return: function.ListReturn{ElementType: changeType},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var before, after types.String

			if err := get(ctx, arguments, &before, &after); err != nil {
				return nil, err
			}

			changes, err := machineconfig.DiffWhole(before.ValueString(), after.ValueString())
			if err != nil {
				return nil, err
			}

			values := []attr.Value{}
			for _, c := range changes {
				values = append(values, types.ObjectValueMust(changeType.AttrTypes, map[string]attr.Value{
					"document": types.StringValue(c.Document), "path": types.StringValue(c.Path.String()),
					"action": types.StringValue(string(c.Kind)), "before": tf.TextOrNull(c.Old), "after": tf.TextOrNull(c.New),
					"text": types.StringValue(c.String()),
				}))
			}

			return types.ListValueMust(changeType, values), nil
		},
	}
}

func parseMachineConfig() pure {
	return pure{
		name: "parse_machine_config",
		definition: function.Definition{
			Summary: "Read a machine configuration as data",
			MarkdownDescription: "Returns the documents of a machine configuration or patch as an object, keyed as in " +
				"plans: `v1alpha1` (main document), or kind and name such as `HostnameConfig` or `VolumeConfig/EPHEMERAL`. It " +
				"reads documents of any kind unchanged, including their secrets.",
			Parameters: []function.Parameter{function.StringParameter{
				Name: "config", MarkdownDescription: "Machine configuration or patch, YAML with one or many documents.",
			}},
			Return: function.DynamicReturn{},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var config string

			if err := get(ctx, arguments, &config); err != nil {
				return nil, err
			}

			parsed, err := documents.Parse(config)
			if err != nil {
				return nil, err
			}

			value, err := valueOf(parsed)

			return types.DynamicValue(value), wrong("config", err)
		},
	}
}

var errNotData = errors.New("one of its values is neither text, number, truth, list nor map")

// valueOf is decoded YAML as a value of Terraform.
func valueOf(content any) (attr.Value, error) {
	switch content := content.(type) {
	case nil:
		return types.DynamicNull(), nil
	case string:
		return types.StringValue(content), nil
	case bool:
		return types.BoolValue(content), nil
	case int:
		return types.NumberValue(new(big.Float).SetInt64(int64(content))), nil
	case int64:
		return types.NumberValue(new(big.Float).SetInt64(content)), nil
	case uint64:
		return types.NumberValue(new(big.Float).SetUint64(content)), nil
	case float64:
		return numberOf(content)
	case []any:
		return tupleOf(content)
	case map[string]any:
		return objectOf(content)
	default:
		return nil, errNotData
	}
}

func numberOf(number float64) (attr.Value, error) {
	if math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, errNotData
	}

	return types.NumberValue(big.NewFloat(number)), nil
}

func tupleOf(list []any) (attr.Value, error) {
	values, kinds := make([]attr.Value, len(list)), make([]attr.Type, len(list))

	for i, element := range list {
		value, err := valueOf(element)
		if err != nil {
			return nil, err
		}

		values[i], kinds[i] = value, value.Type(context.Background())
	}

	return types.TupleValueMust(kinds, values), nil
}

func objectOf(content map[string]any) (attr.Value, error) {
	values, kinds := map[string]attr.Value{}, map[string]attr.Type{}

	for key, element := range content {
		value, err := valueOf(element)
		if err != nil {
			return nil, err
		}

		values[key], kinds[key] = value, value.Type(context.Background())
	}

	return types.ObjectValueMust(kinds, values), nil
}
