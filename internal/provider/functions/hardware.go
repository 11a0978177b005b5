package functions

import (
	"context"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// portableTypes are those of the result of without_hardware.
var portableTypes = map[string]attr.Type{
	"patches": types.ListType{ElemType: types.StringType},
	"skipped": types.ListType{ElemType: partType},
}

func withoutHardware() pure {
	return pure{
		name: "without_hardware",
		definition: function.Definition{
			Summary: "Remove from configuration patches what is bound to machines",
			MarkdownDescription: "Removes the documents and fields about disks, volumes, links, addresses, the kernel and " +
				"other systems of the site. A copy of a cluster in pods takes the rest ([guide](../guides/rehearsals.md)). The " +
				"result has the `patches`, as written where nothing is removed, and the list `skipped` with `patch` (its index), " +
				"`path` and `reason`.",
			Parameters: []function.Parameter{function.ListParameter{
				Name: "patches", ElementType: types.StringType, MarkdownDescription: "Patches. " + patchFormat,
			}},
			Return: function.ObjectReturn{AttributeTypes: portableTypes},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var patches []string

			if err := get(ctx, arguments, &patches); err != nil {
				return nil, err
			}

			portable, bound, err := machineconfig.WithoutHardware(patches)
			if err != nil {
				return nil, err
			}

			skipped := []attr.Value{}
			for _, part := range bound {
				skipped = append(skipped, partOf(part.Patch, part.Path, part.Reason))
			}

			left := []attr.Value{}
			for _, text := range portable {
				left = append(left, types.StringValue(text))
			}

			return types.ObjectValueMust(portableTypes, map[string]attr.Value{
				"patches": types.ListValueMust(types.StringType, left),
				"skipped": types.ListValueMust(partType, skipped),
			}), nil
		},
	}
}

// partOf is a part of a patch, by its index.
func partOf(patch int, path, reason string) attr.Value {
	return types.ObjectValueMust(partType.AttrTypes, map[string]attr.Value{
		"patch": types.NumberValue(big.NewFloat(float64(patch))), "path": types.StringValue(path),
		"reason": types.StringValue(reason),
	})
}
