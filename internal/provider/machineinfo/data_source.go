// Package machineinfo is the data source talosop_machine_info.
package machineinfo

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

var (
	_ datasource.DataSource              = (*DataSource)(nil)
	_ datasource.DataSourceWithConfigure = (*DataSource)(nil)
)

// NewDataSource is the constructor of the data source.
func NewDataSource() datasource.DataSource { return &DataSource{} }

// DataSource asks one machine once.
type DataSource struct {
	providerdata.ConfiguredDataSource
}

// Metadata implements the framework.
func (d *DataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_machine_info"
}

// Schema implements the framework.
func (d *DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Information that one machine reports about itself: in maintenance mode without " +
			"credentials, or as a cluster member with the cluster handle. It reads once, without waiting. A machine that " +
			"does not answer is an error.",
		Attributes: tf.DataSourceAttributes(machineInfoAttributes()),
	}
}

func (d *DataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config Model

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	address := config.Address.ValueString()

	host, err := machineset.CanonicalEndpoint(address)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(invalidAddress.At(
			finding.Root("address"), finding.Args{"address": address, "hint": err.Error()})))

		return
	}

	handle, diags := d.AccessFrom(ctx, config.Cluster)
	resp.Diagnostics.Append(diags...)

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	options, leave, diags := d.OptionsFor(ctx, config, host)
	resp.Diagnostics.Append(diags...)

	defer leave()

	if resp.Diagnostics.HasError() {
		return
	}

	info, err := talos.Inspect(ctx, host, config.Fingerprint.ValueString(), options)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(machineNotRead.At(
			finding.Root("address"), finding.Args{"address": address, "cause": err.Error()})))

		return
	}

	config.Fill(info)
	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}

// OptionsFor adds the credentials of the handle and the route to its machines, if there is one, to the options for
// the Talos API. The caller must call leave.
func (d *DataSource) OptionsFor(
	ctx context.Context, config Model, host string,
) (options talos.Options, leave func(), diags diag.Diagnostics) {
	options, leave = d.Talos, func() {}

	if config.Cluster.IsNull() {
		return options, leave, nil
	}

	handle, bundle, diags := d.ClusterOf(ctx, config.Cluster)
	if diags.HasError() {
		return options, leave, diags
	}

	var err error
	if options.Credentials, err = providerdata.TalosCredentials(ctx, bundle, pki.Inspecting.Talos); err != nil {
		return options, leave, append(diags, tf.Diagnostic(noCredentials.With(
			finding.Args{"address": host, "cause": err.Error()})))
	}

	p := machineset.Set{Object: "machine",
		Host: clusterhandle.HostOf(&tf.Reader{}, &tf.Reader{}, handle, types.ObjectNull(nil), false)}
	p.Settings.Name = handle.Name.ValueString()

	route, err := d.RouteTo(ctx, p, machineset.PriorState{}, bundle)
	if err != nil {
		return options, leave, append(diags, tf.Diagnostic(noRoute.At(
			finding.Root("cluster"), finding.Args{"address": host, "cause": err.Error()})))
	}

	options.Dial = d.Along(route).Talos.Dial

	return options, route.Leave, diags
}
