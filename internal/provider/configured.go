package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// configuredResource is a resource's hold of the machinery, nil before the provider is configured.
type configuredResource struct{ *machinery }

// Configure implements resource.ResourceWithConfigure.
func (c *configuredResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	c.machinery = machineryOf(req.ProviderData, &resp.Diagnostics)
}

// configuredDataSource is a data source's hold of the machinery, nil before the provider is configured.
type configuredDataSource struct{ *machinery }

// Configure implements datasource.DataSourceWithConfigure.
func (c *configuredDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	c.machinery = machineryOf(req.ProviderData, &resp.Diagnostics)
}

// configuredEphemeral is an ephemeral resource's hold of the machinery, nil before the provider is configured.
type configuredEphemeral struct{ *machinery }

// Configure implements ephemeral.EphemeralResourceWithConfigure.
func (c *configuredEphemeral) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	c.machinery = machineryOf(req.ProviderData, &resp.Diagnostics)
}

// machineryOf takes the machinery that Configure was given, nil for none: the framework also configures before the
// provider is.
func machineryOf(data any, diags *diag.Diagnostics) *machinery {
	m, ok := data.(*machinery)
	if !ok && data != nil {
		diags.Append(bug(fmt.Sprintf("the provider handed out a %T", data)))
	}

	return m
}
