package credentials

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// NewKubeconfigFile is the constructor of talosop_kubeconfig_file.
func NewKubeconfigFile() resource.Resource {
	return &fileResource{kind: fileKind{
		name: "kubeconfig", authority: "kubernetes", only: pki.OnlyKubeconfigOf,
		model: func() credentialsFile { return &kubeconfigFileModel{} },
		use:   "Kubernetes API of a cluster, for people with `kubectl --kubeconfig`",
		attributes: map[string]schema.Attribute{
			"user": tf.OptionalString("Username in the certificate, as audit logs show it. Default: `" +
				providerdata.ClientName + "`." + rewritten),
			"groups": tf.OptionalStrings("Groups in the certificate, which set the permissions of the user (RBAC). Default: " +
				"`[\"" + pki.GroupAdmin + "\"]`, which may do everything; no other group has rights in a new cluster." +
				rewritten),
		},
	}}
}

type kubeconfigFileModel struct {
	fileModel

	User   types.String `tfsdk:"user"`
	Groups types.List   `tfsdk:"groups"`
}

func (m *kubeconfigFileModel) validate() diag.Diagnostics {
	var diags diag.Diagnostics

	if !m.User.IsNull() && !m.User.IsUnknown() && m.User.ValueString() == "" {
		diags.Append(tf.Diagnostic(emptyUser.At(finding.Root("user"), nil)))
	}

	for i, element := range m.Groups.Elements() {
		if group, ok := element.(types.String); ok && !group.IsUnknown() && group.ValueString() == "" {
			diags.Append(tf.Diagnostic(emptyGroup.At(finding.Root("groups").AtListIndex(i), nil)))
		}
	}

	return diags
}

func (m *kubeconfigFileModel) ordered(r *tf.Reader, handle clusterhandle.AccessModel, o *order) {
	who := kubernetesIdentityOf(r, m.User, m.Groups)
	o.User, o.Groups, o.Endpoints = who.user, who.groups, []string{r.Text(handle.Endpoint)}
}

func (m *kubeconfigFileModel) foresee(
	ctx context.Context, p *providerdata.ProviderData, handle clusterhandle.AccessModel, bundle *pki.Bundle, _ order,
) diag.Diagnostics {
	return p.WarnOfHidden(ctx, handle, bundle)
}

func (m *kubeconfigFileModel) issue(
	ctx context.Context, p *providerdata.ProviderData, handle clusterhandle.AccessModel, bundle *pki.Bundle, o order,
) (issued, diag.Diagnostics) {
	local, diags := p.ExposedEndpointTo(ctx, handle, bundle)
	if diags.HasError() {
		return issued{}, diags
	}

	out, err := issueKubeconfig(bundle, handle, local, kubernetesIdentity{user: o.User, groups: o.Groups}, o.TTL)
	if err != nil {
		diags.Append(tf.Diagnostic(notIssued.With(finding.Args{"kind": "kubeconfig", "cause": err.Error()})))
	}

	return out, diags
}
