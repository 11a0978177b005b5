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

// ConfiguredResource holds the provider data of a resource, nil before the provider is configured. List resources
// use it, too, because the framework configures them as resources.
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

// ConfiguredDataSource holds the provider data of a data source, nil before the provider is configured.
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

// ConfiguredEphemeral holds the provider data of an ephemeral resource, nil before the provider is configured.
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

// ConfiguredAction holds the provider data of an action, nil before the provider is configured.
type ConfiguredAction struct{ *ProviderData }

// Configure implements action.ActionWithConfigure.
func (c *ConfiguredAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	c.ProviderData = providerDataOf(req.ProviderData, &resp.Diagnostics)
}

// ConfigValidators implements action.ActionWithConfigValidators.
func (ConfiguredAction) ConfigValidators(context.Context) []action.ConfigValidator {
	return []action.ConfigValidator{tf.BlankTexts{}}
}

// providerDataOf converts the data that Configure gets, nil for none: the framework also calls Configure before the
// provider is configured.
func providerDataOf(data any, diags *diag.Diagnostics) *ProviderData {
	m, ok := data.(*ProviderData)
	if !ok && data != nil {
		diags.Append(tf.Bug(fmt.Sprintf("the provider handed out a %T", data)))
	}

	return m
}
