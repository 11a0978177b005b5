package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// OnlyRespelled reports whether a plan equals the state, after the plan modifiers kept former spellings of the
// configuration. The framework has made every computed attribute unknown by then.
func OnlyRespelled(req resource.ModifyPlanRequest) bool {
	var planned, prior, given map[string]tftypes.Value

	if req.State.Raw.IsNull() || req.Plan.Raw.As(&planned) != nil || req.State.Raw.As(&prior) != nil ||
		req.Config.Raw.As(&given) != nil {
		return false
	}

	respelled := false

	for name, value := range planned {
		written := given[name]

		switch computed := !value.IsKnown() && written.IsNull(); {
		case computed:
		case !value.Equal(prior[name]):
			return false
		default:
			respelled = respelled || !written.IsNull() && !written.Equal(value)
		}
	}

	return respelled
}
