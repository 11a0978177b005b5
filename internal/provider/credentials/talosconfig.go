package credentials

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*talosconfigEphemeral)(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*talosconfigEphemeral)(nil)

	_ ephemeral.EphemeralResourceWithValidateConfig = (*talosconfigEphemeral)(nil)
)

// NewTalosconfigEphemeral is the constructor of the ephemeral resource talosop_talosconfig.
func NewTalosconfigEphemeral() ephemeral.EphemeralResource { return &talosconfigEphemeral{} }

// talosconfigEphemeral issues a client certificate for the Talos API. It asks no machine, and stores nothing. For a
// cluster in containers it keeps a route to it open.
type talosconfigEphemeral struct {
	providerdata.ConfiguredEphemeral
}

type talosconfigModel struct {
	Cluster           types.Object         `tfsdk:"cluster"`
	Roles             types.List           `tfsdk:"roles"`
	TTL               timetypes.GoDuration `tfsdk:"ttl"`
	Endpoints         types.List           `tfsdk:"endpoints"`
	Nodes             types.List           `tfsdk:"nodes"`
	Talosconfig       types.String         `tfsdk:"talosconfig"`
	CACertificate     types.String         `tfsdk:"ca_certificate"`
	ClientCertificate types.String         `tfsdk:"client_certificate"`
	ClientKey         types.String         `tfsdk:"client_key"`
	NotAfter          timetypes.RFC3339    `tfsdk:"not_after"`
}

// What the ephemeral resource and the file share.
const (
	rolesDescription = "Talos roles of the client, which set its permissions: `os:reader`, `os:operator`, " +
		"`os:etcd:backup`, `os:admin`. Default: `[\"" + pki.RoleReader + "\"]`, which is read-only."
	nodesDescription = "Machines that commands act on by default. Default: none."
)

func (e *talosconfigEphemeral) Metadata(
	_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_talosconfig"
}

func (e *talosconfigEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attributes := tf.EphemeralAttributes(map[string]resource.Attribute{
		"roles": tf.OptionalStrings(rolesDescription),
		"ttl": resource.StringAttribute{
			Optional:            true,
			CustomType:          timetypes.GoDurationType{},
			MarkdownDescription: "Lifetime of the credentials, such as `30m`. " + ttlDefault,
		},
		"endpoints": resource.ListAttribute{
			Optional:    true,
			Computed:    true,
			ElementType: types.StringType,
			MarkdownDescription: "Addresses that talosctl connects to. Default: the control planes in `talos_endpoints` of " +
				"the handle. In containers, a local port forwarded through the host cluster while this ephemeral resource is " +
				"open.",
		},
		"nodes":              tf.OptionalStrings(nodesDescription),
		"talosconfig":        tf.ComputedSecret("The credentials as a talosconfig file (YAML)."),
		"ca_certificate":     tf.ComputedString("Certificate of the authority that signed the machine certificates, in PEM."),
		"client_certificate": tf.ComputedString("The client certificate in PEM."),
		"client_key":         tf.ComputedSecret("Private key of the client certificate in PEM."),
		"not_after":          tf.ComputedTime("When the credentials expire (RFC 3339, UTC)."),
	})
	attributes["cluster"] = clusterhandle.HandleForEphemerals()

	resp.Schema = schema.Schema{
		MarkdownDescription: "Short-lived credentials for the Talos API of a cluster, made from its secrets without " +
			"contacting a machine; neither state nor plan files store them. They cannot be revoked before they expire, so " +
			"keep `ttl` short and `roles` small. In the apply that creates the cluster, they follow it " +
			"([guide](../guides/credentials.md)).",
		Attributes: attributes,
	}
}

// ValidateConfig implements ephemeral.EphemeralResourceWithValidateConfig.
func (e *talosconfigEphemeral) ValidateConfig(
	ctx context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse,
) {
	var config talosconfigModel

	if tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		lifetimeOf(config.TTL, &resp.Diagnostics)
		resp.Diagnostics.Append(validateRoles(config.Roles)...)
	}
}

func (e *talosconfigEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var config talosconfigModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	lifetime := lifetimeOf(config.TTL, &resp.Diagnostics)

	handle, bundle, diags := e.ClusterOf(ctx, config.Cluster)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	if config.Endpoints.IsNull() {
		local, diags := e.TalosEndpointTo(ctx, handle, bundle)
		resp.Diagnostics.Append(diags...)
		local.Remember(ctx, resp, e.ProviderData)

		if resp.Diagnostics.HasError() {
			return
		}

		if local != nil {
			config.Endpoints = tf.TextList([]string{local.Address})
		}
	}

	if config.Endpoints.IsNull() {
		config.Endpoints = handle.TalosEndpoints
	}

	r := &tf.Reader{}

	out, err := issueTalosconfig(bundle, handle, r.Texts(config.Endpoints), r.Texts(config.Nodes),
		rolesOf(r, config.Roles), lifetime)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(notIssued.With(finding.Args{"kind": "talosconfig", "cause": err.Error()})))

		return
	}

	config.fill(out)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &config)...)
}

func (m *talosconfigModel) fill(out issued) {
	m.Talosconfig = types.StringValue(string(out.file))
	m.CACertificate = types.StringValue(string(out.CA))
	m.ClientCertificate = types.StringValue(string(out.Certificate))
	m.ClientKey = types.StringValue(string(out.Key))
	m.NotAfter = timetypes.NewRFC3339TimeValue(out.NotAfter)
}

// The default and maximum lifetime of credentials for one run: they cannot be revoked.
const (
	defaultTTL = time.Hour
	longestTTL = 24 * time.Hour
	ttlDefault = "Default: `1h`; at most `24h`."
)

func lifetimeOf(ttl timetypes.GoDuration, diags *diag.Diagnostics) time.Duration {
	if ttl.IsNull() || ttl.IsUnknown() {
		return defaultTTL
	}

	lifetime, more := ttl.ValueGoDuration()
	diags.Append(more...)

	if !more.HasError() && (lifetime <= 0 || lifetime > longestTTL) {
		diags.Append(tf.Diagnostic(invalidTTL.At(
			finding.Root("ttl"), finding.Args{"value": ttl.ValueString()})))
	}

	return lifetime
}
