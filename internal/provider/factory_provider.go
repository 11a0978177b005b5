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
	return tf.OptionalString("URL of an Image Factory, such as `" + assets.PublicFactory + "`, in which plans look up the " +
		"content of a new schematic that is given by its ID, to show its system extensions by name; `" +
		providerdata.NoFactory + "` for no look-up. Default: the registry of the installer image. Without an answer, plans " +
		"show the ID.")
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
