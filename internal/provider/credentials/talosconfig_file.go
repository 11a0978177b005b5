package credentials

import (
	"context"
	"strings"

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

// NewTalosconfigFile is the constructor of talosop_talosconfig_file.
func NewTalosconfigFile() resource.Resource {
	return &fileResource{kind: fileKind{
		name: "talosconfig", authority: "talos", only: pki.OnlyTalosconfigOf,
		model: func() credentialsFile { return &talosconfigFileModel{} },
		use:   "Talos API of a cluster, for people with `talosctl --talosconfig`",
		attributes: map[string]schema.Attribute{
			"roles": tf.OptionalStrings(rolesDescription + rewritten),
			"endpoints": tf.OptionalStrings("Addresses that talosctl connects to. Default: the control planes in " +
				"`talos_endpoints` of the handle; required for a cluster in containers, whose addresses only its host cluster " +
				"knows." + rewritten),
			"nodes": tf.OptionalStrings(nodesDescription + rewritten),
		},
	}}
}

type talosconfigFileModel struct {
	fileModel

	Roles     types.List `tfsdk:"roles"`
	Endpoints types.List `tfsdk:"endpoints"`
	Nodes     types.List `tfsdk:"nodes"`
}

func (m *talosconfigFileModel) validate() diag.Diagnostics { return validateRoles(m.Roles) }

// validateRoles checks the roles of a talosconfig.
func validateRoles(roles types.List) diag.Diagnostics {
	at := finding.Root("roles")

	if roles.IsNull() || roles.IsUnknown() {
		return nil
	}

	var diags diag.Diagnostics

	_, known := pki.UnknownRoles(nil)

	if len(roles.Elements()) == 0 {
		diags.Append(tf.Diagnostic(noRoles.At(at, finding.Args{"roles": known})))
	}

	for i, element := range roles.Elements() {
		role, ok := element.(types.String)
		if !ok || role.IsUnknown() {
			continue
		}

		text := role.ValueString()
		if unknown, _ := pki.UnknownRoles([]string{text}); len(unknown) > 0 || strings.TrimSpace(text) == "" {
			diags.Append(tf.Diagnostic(unknownRole.At(at.AtListIndex(i), finding.Args{"role": text, "roles": known})))
		}
	}

	return diags
}

func (m *talosconfigFileModel) ordered(r *tf.Reader, handle clusterhandle.AccessModel, o *order) {
	o.Roles, o.Nodes = rolesOf(r, m.Roles), r.Texts(m.Nodes)

	o.Endpoints = r.Texts(m.Endpoints)
	if m.Endpoints.IsNull() {
		o.Endpoints = r.Texts(handle.TalosEndpoints)
	}
}

// foresee refuses a file that leads to no machine.
func (m *talosconfigFileModel) foresee(
	_ context.Context, p *providerdata.ProviderData, handle clusterhandle.AccessModel, _ *pki.Bundle, o order,
) diag.Diagnostics {
	hidden := p.TalosIsHidden(handle)
	if !m.Endpoints.IsNull() || !hidden && len(o.Endpoints) > 0 {
		return nil
	}

	return diag.Diagnostics{tf.Diagnostic(noEndpoints.At(finding.Root("endpoints"), finding.Args{"hidden": hidden}))}
}

func (m *talosconfigFileModel) issue(
	ctx context.Context, p *providerdata.ProviderData, handle clusterhandle.AccessModel, bundle *pki.Bundle, o order,
) (issued, diag.Diagnostics) {
	if diags := m.foresee(ctx, p, handle, bundle, o); diags.HasError() {
		return issued{}, diags
	}

	out, err := issueTalosconfig(bundle, handle, o.Endpoints, o.Nodes, o.Roles, o.TTL)
	if err != nil {
		return out, diag.Diagnostics{tf.Diagnostic(notIssued.With(finding.Args{"kind": "talosconfig", "cause": err.Error()}))}
	}

	return out, nil
}
