// Package functions is the functions of the provider: pure, with only their arguments as input, and without a
// configured provider.
//
// Packages without the framework compute the results; here arguments become values and results become values of
// Terraform. The CLIs handle unknown arguments (the result is unknown then) and null ones where null has no meaning.
package functions

import (
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var _ function.Function = pure{}

func refuseBlank(at int64, text types.String) *function.FuncError {
	if text.IsNull() || text.IsUnknown() || !tf.IsBlank(text.ValueString()) {
		return nil
	}

	return function.NewArgumentFuncError(at, tf.BlankText(text.ValueString())+" Use null for no value.")
}

// All are the constructors of the functions.
func All() []func() function.Function {
	var all []func() function.Function

	for _, p := range []pure{
		mergePatches(), validatePatch(), convertPatches(), withoutHardware(), machineConfigDiff(), parseMachineConfig(),
		installerImage(),
		schematicID(), upgradePath(),
	} {
		all = append(all, func() function.Function { return p })
	}

	return all
}
