package providerdata

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ datasource.DataSourceWithConfigure        = (*DataSource[struct{}])(nil)
	_ datasource.DataSourceWithValidateConfig   = (*DataSource[struct{}])(nil)
	_ datasource.DataSourceWithConfigValidators = (*DataSource[struct{}])(nil)
)

// DataSource is a data source whose model is an M. Its fields are what distinguishes it from others.
type DataSource[M any] struct {
	ConfiguredDataSource

	// Name is its type without the prefix of the provider, such as "versions".
	Name string
	// Description is Markdown.
	Description string
	// Attributes are described as those of a resource.
	Attributes func() map[string]resource.Attribute
	// Timeout describes `timeouts.read`; empty where no read waits.
	Timeout string
	// Check finds mistakes in a configuration, of which any part may be unknown; nil where there are none to find.
	Check func(ctx context.Context, config *M) diag.Diagnostics
	// Look fills in the results. Warnings do not hide them, errors do.
	Look func(ctx context.Context, m *ProviderData, config *M) diag.Diagnostics
}

// Metadata implements datasource.DataSource.
func (d *DataSource[M]) Metadata(
	_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_" + d.Name
}

// Schema implements datasource.DataSource.
func (d *DataSource[M]) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := tf.DataSourceAttributes(d.Attributes())
	if d.Timeout != "" {
		attributes["timeouts"] = tf.ReadTimeouts(ctx, d.Timeout)
	}

	resp.Schema = schema.Schema{MarkdownDescription: d.Description, Attributes: attributes}
}

// ValidateConfig implements datasource.DataSourceWithValidateConfig.
func (d *DataSource[M]) ValidateConfig(
	ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse,
) {
	var config M

	if d.Check != nil && tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		resp.Diagnostics.Append(d.Check(ctx, &config)...)
	}
}

// Read implements datasource.DataSource.
func (d *DataSource[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config M

	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); resp.Diagnostics.HasError() {
		return
	}

	if resp.Diagnostics.Append(d.Look(ctx, d.ProviderData, &config)...); resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}
