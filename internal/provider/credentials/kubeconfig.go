// Package credentials has the credentials that programs and people connect to a cluster with. The ephemeral
// resources talosop_kubeconfig and talosop_talosconfig are for other providers, and talosop_kubeconfig_file and
// talosop_talosconfig_file are for a person.
package credentials

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
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
	_ ephemeral.EphemeralResourceWithConfigure = (*kubeconfigEphemeral)(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*kubeconfigEphemeral)(nil)

	_ ephemeral.EphemeralResourceWithValidateConfig = (*kubeconfigEphemeral)(nil)
)

// NewKubeconfigEphemeral is the constructor of the ephemeral resource talosop_kubeconfig.
func NewKubeconfigEphemeral() ephemeral.EphemeralResource { return &kubeconfigEphemeral{} }

// kubeconfigEphemeral issues a client certificate for the Kubernetes API. It asks no machine, and stores nothing.
// For a cluster in containers it keeps a route to it open.
type kubeconfigEphemeral struct {
	providerdata.ConfiguredEphemeral
}

type kubeconfigModel struct {
	Cluster              types.Object         `tfsdk:"cluster"`
	User                 types.String         `tfsdk:"user"`
	Groups               types.List           `tfsdk:"groups"`
	TTL                  timetypes.GoDuration `tfsdk:"ttl"`
	Kubeconfig           types.String         `tfsdk:"kubeconfig"`
	Endpoint             types.String         `tfsdk:"endpoint"`
	TLSServerName        types.String         `tfsdk:"tls_server_name"`
	ClusterCACertificate types.String         `tfsdk:"cluster_ca_certificate"`
	ClientCertificate    types.String         `tfsdk:"client_certificate"`
	ClientKey            types.String         `tfsdk:"client_key"`
	NotAfter             timetypes.RFC3339    `tfsdk:"not_after"`
}

func (e *kubeconfigEphemeral) Metadata(
	_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_kubeconfig"
}

func (e *kubeconfigEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attributes := tf.EphemeralAttributes(map[string]resource.Attribute{
		"user": tf.OptionalString("Username in the certificate, as audit logs show it. Default: `" +
			providerdata.ClientName + "`."),
		"groups": tf.OptionalStrings("Groups in the certificate, which set the permissions of the user (RBAC). Default: " +
			"`[\"" + pki.GroupAdmin + "\"]`, which may do everything; no other group has rights in a new cluster."),
		"ttl": resource.StringAttribute{
			Optional:            true,
			CustomType:          timetypes.GoDurationType{},
			MarkdownDescription: "Lifetime of the credentials, such as `30m`. " + ttlDefault,
		},
		"kubeconfig": tf.ComputedSecret("The credentials as a kubeconfig file (YAML)."),
		"endpoint": tf.ComputedString("URL of the Kubernetes API, for `host` of the providers `kubernetes` and `helm`. " +
			"In containers it is the Service's node port or load balancer, or a local port through the host cluster while " +
			"the ephemeral resource is open. An `endpoint` that you set is used unchanged."),
		"tls_server_name": tf.ComputedString("Name to verify the API certificate for, if it is not the host of the URL, " +
			"for `tls_server_name` of the providers `kubernetes` and `helm`; otherwise null. The kubeconfig contains it as " +
			"well."),
		"cluster_ca_certificate": tf.ComputedString("Certificate of the authority that signed the API certificate, in " +
			"PEM."),
		"client_certificate": tf.ComputedString("The client certificate in PEM."),
		"client_key":         tf.ComputedSecret("Private key of the client certificate in PEM."),
		"not_after":          tf.ComputedTime("When the credentials expire (RFC 3339, UTC)."),
	})
	attributes["cluster"] = clusterhandle.HandleForEphemerals()

	resp.Schema = schema.Schema{
		MarkdownDescription: "Short-lived credentials for the Kubernetes API of a cluster, made from its secrets without " +
			"contacting a machine; neither state nor plan files store them. They cannot be revoked before they expire, so " +
			"keep `ttl` short. In the apply that creates the cluster, they follow it ([guide](../guides/credentials.md)).",
		Attributes: attributes,
	}
}

// ValidateConfig implements ephemeral.EphemeralResourceWithValidateConfig.
func (e *kubeconfigEphemeral) ValidateConfig(
	ctx context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse,
) {
	var config kubeconfigModel

	if tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		lifetimeOf(config.TTL, &resp.Diagnostics)
	}
}

func (e *kubeconfigEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var config kubeconfigModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	lifetime := lifetimeOf(config.TTL, &resp.Diagnostics)

	handle, bundle, diags := e.ClusterOf(ctx, config.Cluster)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	local, diags := e.EndpointTo(ctx, handle, bundle)
	resp.Diagnostics.Append(diags...)
	local.Remember(ctx, resp, e.ProviderData)

	if resp.Diagnostics.HasError() {
		return
	}

	out, err := issueKubeconfig(bundle, handle, local,
		kubernetesIdentityOf(&tf.Reader{}, config.User, config.Groups), lifetime)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(notIssued.With(finding.Args{"kind": "kubeconfig", "cause": err.Error()})))

		return
	}

	config.fill(out)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &config)...)
}

func (m *kubeconfigModel) fill(out issued) {
	m.Kubeconfig = types.StringValue(string(out.file))
	m.Endpoint, m.TLSServerName = types.StringValue(out.server), tf.TextOrNull(out.serverName)
	m.ClusterCACertificate = types.StringValue(string(out.CA))
	m.ClientCertificate = types.StringValue(string(out.Certificate))
	m.ClientKey = types.StringValue(string(out.Key))
	m.NotAfter = timetypes.NewRFC3339TimeValue(out.NotAfter)
}
