package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// partType is a part of a patch, and why it is listed.
var partType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"patch": types.NumberType, "path": types.StringType, "reason": types.StringType,
}}

// convertedTypes are those of the result of convert_patches.
var convertedTypes = map[string]attr.Type{
	"patches": types.ListType{ElemType: types.StringType},
	"kept":    types.ListType{ElemType: partType},
	"removed": types.ListType{ElemType: partType},
}

func convertPatches() pure {
	return pure{
		name: "convert_patches",
		definition: function.Definition{
			Summary: "Convert configuration patches to the documents of a newer version contract",
			MarkdownDescription: "Writes patches of the main document as the documents of a newer version contract, with the " +
				"same effect and their comments ([guide](../guides/move-to-contract-1-14.md)). The result has `patches`, one for " +
				"each, and the lists `kept` and `removed` of fields that stay, and of fields without effect, with `patch` (its " +
				"index), `path` and `reason`. A field that has no form with the same effect is an error.",
			Parameters: []function.Parameter{
				function.ListParameter{
					Name: "patches", ElementType: types.StringType,
					MarkdownDescription: "Patches of one machine, in the order in which they apply, because later ones may depend " +
						"on earlier ones. " + patchFormat,
				},
				function.StringParameter{
					Name: "role",
					MarkdownDescription: "Role of the machines, `controlplane` or `worker`: workers must not have some documents. " +
						"Convert the patches of all machines once for each role.",
				},
				function.StringParameter{
					Name: "from_contract", MarkdownDescription: "Version contract that the patches are for, such as `v1.13`.",
				},
				function.StringParameter{
					Name: "to_contract", MarkdownDescription: "Version contract of the result, such as `v1.14`; not an older one.",
				},
			},
			Return: function.ObjectReturn{AttributeTypes: convertedTypes},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var (
				patches        []string
				role, from, to string
			)

			if err := get(ctx, arguments, &patches, &role, &from, &to); err != nil {
				return nil, err
			}

			converted, err := machineconfig.ConvertPatches(patches, machineconfig.Role(role), from, to)
			if err != nil {
				return nil, err
			}

			texts := []attr.Value{}
			for _, text := range converted.Patches {
				texts = append(texts, types.StringValue(text))
			}

			return types.ObjectValueMust(convertedTypes, map[string]attr.Value{
				"patches": types.ListValueMust(types.StringType, texts),
				"kept":    partsOf(converted.Kept), "removed": partsOf(converted.Removed),
			}), nil
		},
	}
}

func partsOf(parts []machineconfig.ConvertedPart) attr.Value {
	values := []attr.Value{}
	for _, part := range parts {
		values = append(values, partOf(part.Patch, part.Path, part.Why))
	}

	return types.ListValueMust(partType, values)
}
