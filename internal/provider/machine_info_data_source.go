package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

var (
	_ datasource.DataSource              = (*machineInfoDataSource)(nil)
	_ datasource.DataSourceWithConfigure = (*machineInfoDataSource)(nil)
)

func newMachineInfoDataSource() datasource.DataSource { return &machineInfoDataSource{} }

// machineInfoDataSource asks one machine once.
type machineInfoDataSource struct{ configuredDataSource }

func (d *machineInfoDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_machine_info"
}

func (d *machineInfoDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "What one machine tells about itself: in maintenance mode, where it needs no credentials, or as a member of a cluster, with the " +
			"handle of that cluster. Asked once, without waiting; a machine that does not answer is an error.",
		Attributes: machineInfoAttributes(),
	}
}

func (d *machineInfoDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config machineInfoModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	address := config.Address.ValueString()

	host, err := canonicalHost(address)
	if err != nil {
		resp.Diagnostics.Append(invalid(path.Root("address"), "address", "found "+quote(address),
			"allowed is an IP address or a host name, without scheme, port or brackets", err.Error()))

		return
	}

	handle, diags := handleFrom(ctx, config.Cluster)
	resp.Diagnostics.Append(diags...)

	ctx = maskSecrets(ctx, handle.Secrets.ValueString())

	options, leave, diags := d.optionsFor(ctx, config, host)
	resp.Diagnostics.Append(diags...)

	defer leave()

	if resp.Diagnostics.HasError() {
		return
	}

	info, err := talos.Inspect(ctx, host, options)
	if err != nil {
		resp.Diagnostics.Append(unableAt(path.Root("address"), "read", "machine", report{
			Attempted: "ask the machine at " + address + " about itself", Cause: []string{err.Error()},
			Next: "Machines that belong to a cluster only answer with its handle in cluster; all others have to be in maintenance mode.",
		}))

		return
	}

	config.fill(info)
	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}

// optionsFor adds the credentials of the handle and the way to its machines, when there is one, and the
// fingerprint to what the Talos API is asked with. leave has to be called.
func (d *machineInfoDataSource) optionsFor(
	ctx context.Context, config machineInfoModel, host string,
) (options talos.Options, leave func(), diags diag.Diagnostics) {
	options, leave = d.talos, func() {}

	if !config.Fingerprint.IsNull() {
		options.Fingerprints = map[string][]string{host: {config.Fingerprint.ValueString()}}
	}

	if config.Cluster.IsNull() {
		return options, leave, nil
	}

	handle, bundle, diags := clusterOf(ctx, config.Cluster)
	if diags.HasError() {
		return options, leave, diags
	}

	credentials, err := bundle.TalosClient([]string{adminRole}, credentialsTTL)
	if err != nil {
		return options, leave, append(diags, unable("read", "machine", report{Cause: []string{err.Error()}}))
	}

	options.Credentials = talos.Credentials{CA: credentials.CA, Cert: credentials.Certificate, Key: credentials.Key}

	p := pool{object: "machine", host: hostOf(&reader{}, &reader{}, handle, types.ObjectNull(nil), nil)}
	p.settings.Name = handle.Name.ValueString()

	way, err := d.routeTo(ctx, p, recordedPool{}, bundle)
	if err != nil {
		return options, leave, append(diags, unableAt(path.Root("cluster"), "read", "machine", report{Cause: []string{err.Error()}}))
	}

	options.Dial = d.along(way).talos.Dial

	return options, way.leave, diags
}
