package credentials

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
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
		model:  func() credentialsFile { return &talosconfigFileModel{} },
		use:    "Talos API of a cluster, for people with `talosctl --talosconfig`",
		others: "; talosctl config merge puts one file into another",
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
	at := path.Root("roles")

	if roles.IsNull() || roles.IsUnknown() {
		return nil
	}

	var diags diag.Diagnostics

	_, known := pki.UnknownRoles(nil)
	allowed := "allowed are " + finding.Describe(known)

	if len(roles.Elements()) == 0 {
		diags.Append(tf.Invalid(at, "roles", "found none", allowed, "list at least one, or leave roles out"))
	}

	for i, element := range roles.Elements() {
		role, ok := element.(types.String)
		if !ok || role.IsUnknown() {
			continue
		}

		text := role.ValueString()
		if unknown, _ := pki.UnknownRoles([]string{text}); len(unknown) > 0 || strings.TrimSpace(text) == "" {
			diags.Append(tf.Invalid(at.AtListIndex(i), "role", "found "+finding.Quote(text), allowed, "name one of them"))
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
	found := "found none, and none in the handle of the cluster"

	switch {
	case !m.Endpoints.IsNull():
		return nil
	case p.TalosIsHidden(handle):
		found = "found none, and those in the handle are known to the host cluster of machines in containers alone"
	case len(o.Endpoints) > 0:
		return nil
	}

	return diag.Diagnostics{tf.Invalid(path.Root("endpoints"), "endpoints", found,
		"allowed are addresses where the Talos API of control planes answers",
		"list at least one; the ephemeral resource talosop_talosconfig opens a way to machines in containers")}
}

func (m *talosconfigFileModel) issue(
	ctx context.Context, p *providerdata.ProviderData, handle clusterhandle.AccessModel, bundle *pki.Bundle, o order,
) (issued, diag.Diagnostics) {
	if diags := m.foresee(ctx, p, handle, bundle, o); diags.HasError() {
		return issued{}, diags
	}

	out, err := issueTalosconfig(bundle, handle, o.Endpoints, o.Nodes, o.Roles, o.TTL)
	if err != nil {
		return out, diag.Diagnostics{notIssued("talosconfig", err)}
	}

	return out, nil
}
