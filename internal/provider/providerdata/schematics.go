package providerdata

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// NoFactory is the value of factory_url for plans that ask no Image Factory.
const NoFactory = "none"

// WarnOfSchematics reports the system extensions that come and go with schematics of which the configuration has only
// the ID. It is silent about those whose content it cannot read: the plan shows their IDs.
func (m *ProviderData) WarnOfSchematics(ctx context.Context, changes []machineset.SchematicChange) finding.List {
	if m.Schematics == nil || m.Factory == NoFactory {
		return nil
	}

	extensions := map[string][]string{}

	for _, change := range changes {
		content, err := m.Schematics.Read(ctx, m.factoryOf(change.Registry), change.ID)
		if err != nil {
			tf.LogDebug(ctx, "The extensions of a schematic are unknown", map[string]any{"cause": err.Error()})

			continue
		}

		extensions[change.ID] = append([]string{}, content.Customization.SystemExtensions.OfficialExtensions...)
	}

	return machineset.WarnOfSchematics(changes, extensions)
}

// factoryOf is the URL of the Image Factory that is the registry of an image.
func (m *ProviderData) factoryOf(registry string) string {
	switch {
	case m.Factory != "":
		return m.Factory
	case registry == "":
		return assets.PublicFactory
	default:
		return "https://" + registry
	}
}
