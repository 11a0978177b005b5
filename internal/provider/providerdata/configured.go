package providerdata

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ConfiguredResource is a resource's hold of the provider data, nil before the provider is configured. It is that of a
// list resource, too, which the framework configures as a resource.
type ConfiguredResource struct{ *ProviderData }

// Configure implements resource.ResourceWithConfigure.
func (c *ConfiguredResource) Configure(
	_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse,
) {
	c.ProviderData = providerDataOf(req.ProviderData, &resp.Diagnostics)
}

// ConfigValidators implements resource.ResourceWithConfigValidators.
func (ConfiguredResource) ConfigValidators(context.Context) []resource.ConfigValidator {
	return []resource.ConfigValidator{tf.BlankTexts{}}
}

// ListResourceConfigValidators implements list.ListResourceWithConfigValidators.
func (ConfiguredResource) ListResourceConfigValidators(context.Context) []list.ConfigValidator {
	return []list.ConfigValidator{tf.BlankTexts{}}
}

// ConfiguredDataSource is a data source's hold of the provider data, nil before the provider is configured.
type ConfiguredDataSource struct{ *ProviderData }

// Configure implements datasource.DataSourceWithConfigure.
func (c *ConfiguredDataSource) Configure(
	_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse,
) {
	c.ProviderData = providerDataOf(req.ProviderData, &resp.Diagnostics)
}

// ConfigValidators implements datasource.DataSourceWithConfigValidators.
func (ConfiguredDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{tf.BlankTexts{}}
}

// ConfiguredEphemeral is an ephemeral resource's hold of the provider data, nil before the provider is configured.
type ConfiguredEphemeral struct{ *ProviderData }

// Configure implements ephemeral.EphemeralResourceWithConfigure.
func (c *ConfiguredEphemeral) Configure(
	_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse,
) {
	c.ProviderData = providerDataOf(req.ProviderData, &resp.Diagnostics)
}

// ConfigValidators implements ephemeral.EphemeralResourceWithConfigValidators.
func (ConfiguredEphemeral) ConfigValidators(context.Context) []ephemeral.ConfigValidator {
	return []ephemeral.ConfigValidator{tf.BlankTexts{}}
}

// ConfiguredAction is an action's hold of the provider data, nil before the provider is configured.
type ConfiguredAction struct{ *ProviderData }

// Configure implements action.ActionWithConfigure.
func (c *ConfiguredAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	c.ProviderData = providerDataOf(req.ProviderData, &resp.Diagnostics)
}

// ConfigValidators implements action.ActionWithConfigValidators.
func (ConfiguredAction) ConfigValidators(context.Context) []action.ConfigValidator {
	return []action.ConfigValidator{tf.BlankTexts{}}
}

// providerDataOf takes the provider data that Configure was given, nil for none: the framework also configures before
// the provider is.
func providerDataOf(data any, diags *diag.Diagnostics) *ProviderData {
	m, ok := data.(*ProviderData)
	if !ok && data != nil {
		diags.Append(tf.Bug(fmt.Sprintf("the provider handed out a %T", data)))
	}

	return m
}
