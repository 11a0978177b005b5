package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// TolerationModel is a toleration of pods.
type TolerationModel struct {
	Key      types.String `tfsdk:"key"`
	Operator types.String `tfsdk:"operator"`
	Value    types.String `tfsdk:"value"`
	Effect   types.String `tfsdk:"effect"`
	Seconds  types.Int64  `tfsdk:"toleration_seconds"`
}
