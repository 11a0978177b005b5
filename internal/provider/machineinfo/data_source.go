// Package machineinfo is the data source talosop_machine_info.
package machineinfo

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
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

// NewDataSource is the constructor of the data source.
func NewDataSource() datasource.DataSource {
	return &providerdata.DataSource[Model]{
		Name: "machine_info",
		Description: "Information that one machine reports about itself: in maintenance mode without " +
			"credentials, or as a cluster member with the cluster handle. It reads once, without waiting. A machine that " +
			"does not answer is an error.",
		Attributes: machineInfoAttributes,
		Look:       inspect,
	}
}

// inspect asks one machine once.
func inspect(ctx context.Context, m *providerdata.ProviderData, config *Model) diag.Diagnostics {
	address := config.Address.ValueString()

	host, err := machineset.CanonicalEndpoint(address)
	if err != nil {
		return diag.Diagnostics{tf.Diagnostic(invalidAddress.At(
			finding.Root("address"), finding.Args{"address": address, "hint": err.Error()}))}
	}

	handle, diags := m.AccessFrom(ctx, config.Cluster)
	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	options, leave, more := OptionsFor(ctx, m, *config, host)
	diags.Append(more...)

	defer leave()

	if diags.HasError() {
		return diags
	}

	info, err := talos.Inspect(ctx, host, config.Fingerprint.ValueString(), options)
	if err != nil {
		return append(diags, tf.Diagnostic(machineNotRead.At(
			finding.Root("address"), finding.Args{"address": address, "cause": err.Error()})))
	}

	config.Fill(info)

	return diags
}

// OptionsFor adds the credentials of the handle and the route to its machines, if there is one, to the options for
// the Talos API. The caller must call leave.
func OptionsFor(
	ctx context.Context, m *providerdata.ProviderData, config Model, host string,
) (options talos.Options, leave func(), diags diag.Diagnostics) {
	options, leave = m.Talos, func() {}

	if config.Cluster.IsNull() {
		return options, leave, nil
	}

	handle, bundle, diags := m.ClusterOf(ctx, config.Cluster)
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

	route, err := m.RouteTo(ctx, p, machineset.PriorState{}, bundle)
	if err != nil {
		return options, leave, append(diags, tf.Diagnostic(noRoute.At(
			finding.Root("cluster"), finding.Args{"address": host, "cause": err.Error()})))
	}

	options.Dial = m.Along(route).Talos.Dial

	return options, route.Leave, diags
}
