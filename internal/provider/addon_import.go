package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// ImportState reads a release that exists.
func (r *addonResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
}
