package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func providerEndpoints() schema.ListAttribute {
	return tf.OptionalStrings("Endpoints of clusters, as in their `endpoint`, that the computer that runs Terraform " +
		"cannot reach, such as names in another network. talosop asks the control planes instead, and ignores the " +
		"endpoint in `phase`. Any other endpoint must answer, through `proxy_url` and `jump_host` if set; until then, " +
		"the phase is `Degraded`.")
}

// outOfReach reads which endpoints need not answer.
func (m providerModel) outOfReach() providerdata.Endpoints {
	r := &tf.Reader{}

	return providerdata.Endpoints{URLs: r.Texts(m.UnreachableEndpoints), Unknown: r.Unknown}
}

// validateEndpoints reports mistakes in the known endpoints.
func (m providerModel) validateEndpoints() (diags diag.Diagnostics) {
	for i, element := range m.UnreachableEndpoints.Elements() {
		text, is := element.(types.String)
		if !is || text.IsUnknown() {
			continue
		}

		if err := providerdata.CheckEndpoint(text.ValueString()); err != nil {
			diags.Append(tf.Diagnostic(invalidEndpoint.At(
				finding.Root("unreachable_endpoints").AtListIndex(i), finding.Args{"cause": err.Error()})))
		}
	}

	return diags
}
