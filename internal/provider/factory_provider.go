package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func providerFactory() schema.StringAttribute {
	return tf.OptionalString("URL of the Image Factory in which plans look up new schematics by their ID, such as `" +
		assets.PublicFactory + "`; `" + providerdata.NoFactory + "` for no look-up. Plans then show system extensions by " +
		"name, and otherwise the ID. Default: the registry of the installer image.")
}

// factory is the URL of the factory; none while it is unknown.
func (m providerModel) factory() string {
	if m.FactoryURL.IsUnknown() {
		return providerdata.NoFactory
	}

	return m.FactoryURL.ValueString()
}

// validateFactory reports a mistake in the URL.
func (m providerModel) validateFactory() diag.Diagnostics {
	if text := m.FactoryURL.ValueString(); text != providerdata.NoFactory {
		if wrong := (assets.Image{Factory: text}).Check(); wrong != nil {
			return diag.Diagnostics{tf.Diagnostic(invalidFactory.At(finding.Root("factory_url"),
				finding.Args{"found": wrong.Found, "allowed": wrong.Allowed}))}
		}
	}

	return nil
}
