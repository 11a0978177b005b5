// Package images is the data sources talosop_image and talosop_boot_assets: what an Image Factory makes of a
// schematic, and what boots machines over the network. Both compute their results; only with `online` they ask the
// factory.
package images

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// selection is the image that both data sources take as input, and their results about its schematic.
type selection struct {
	ID           types.String `tfsdk:"id"`
	TalosVersion types.String `tfsdk:"talos_version"`
	Schematic    types.String `tfsdk:"schematic"`
	Platform     types.String `tfsdk:"platform"`
	Architecture types.String `tfsdk:"architecture"`
	SecureBoot   types.Bool   `tfsdk:"secure_boot"`
	FactoryURL   types.String `tfsdk:"factory_url"`
	Online       types.Bool   `tfsdk:"online"`

	SchematicID      types.String `tfsdk:"schematic_id"`
	SchematicContent types.String `tfsdk:"schematic_content"`
}

func selectionAttributes(platforms []string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("Schematic, version and file name of the image, for messages of the CLI."),
		"talos_version": tf.RequiredString("Talos version, such as `" + machineconfig.CurrentTalos +
			"`, with or without the `v`."),
		"schematic": tf.OptionalString("ID or content (YAML) of an Image Factory schematic. Default: plain Talos, the " +
			"empty schematic."),
		"platform": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Talos platform: `" + strings.Join(platforms, "`, `") + "`. Default: `metal`.",
		},
		"architecture": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "`amd64` or `arm64`. Default: `amd64`.",
		},
		"secure_boot": tf.OptionalBool("Whether the images are signed for UEFI Secure Boot. Default: `false`."),
		"factory_url": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "URL of the Image Factory. Default: `" + assets.PublicFactory + "`.",
		},
		"online": tf.OptionalBool("Whether each plan contacts the factory: it uploads the schematic content, and checks " +
			"that the schematic, the version and the extensions exist. Default: `false`, so that plans need no network."),
		"schematic_id": tf.ComputedString("ID of the schematic, for `schematic` of machines."),
		"schematic_content": tf.ComputedString("Content of the schematic in the format of the factory; null without " +
			"`online` if only the ID is known."),
	}
}

// chosen is an image, and the facts about its schematic.
type chosen struct {
	assets.Image

	content schematic.Schematic
	// known reports whether content is known, and not just its ID.
	known bool
	// named are the extensions next to the schematic, and short those of them without a vendor, which only the factory
	// can complete.
	named, short []string
	// extensions are the images of the extensions, once the factory has answered.
	extensions map[string]string
	// line is the kernel command line from the factory.
	line string
}

// additions are added to the content of a schematic.
type additions struct{ extensions, args []string }

// choose reads the selection without I/O. The checks skip unknown values.
func (s selection) choose(added additions) (chosen, finding.List) {
	var diags finding.List

	c := chosen{Image: assets.Image{
		Version: machineconfig.CanonicalVersion(s.TalosVersion.ValueString()), Platform: s.Platform.ValueString(),
		Architecture: s.Architecture.ValueString(), SecureBoot: s.SecureBoot.ValueBool(), Factory: s.FactoryURL.ValueString(),
	}}

	if s.Platform.IsNull() {
		c.Platform = image.DefaultPlatform
	}

	if s.Architecture.IsNull() {
		c.Architecture = assets.DefaultArchitecture
	}

	if s.FactoryURL.IsNull() {
		c.Factory = assets.PublicFactory
	}

	if !s.TalosVersion.IsUnknown() {
		if _, err := machineconfig.ParseTalosVersion(c.Version); err != nil {
			diags.Append(finding.MistakesAt(finding.Root("talos_version"), err)...)
		}
	}

	if wrong := c.Check(); wrong != nil {
		diags.Append(invalidImage.At(finding.Root(wrong.Field),
			finding.Args{"found": wrong.Found, "allowed": wrong.Allowed}))
	}

	diags.Append(c.readSchematic(s, added)...)

	return c, diags
}

// readSchematic reads the schematic and its additions.
func (c *chosen) readSchematic(s selection, added additions) finding.List {
	text := s.Schematic.ValueString()
	adds := len(added.extensions)+len(added.args) > 0

	switch {
	case s.Schematic.IsUnknown():
		return nil
	case s.Schematic.IsNull():
	case schematic.LooksLikeID(text):
		if err := image.CheckSchematic(text); err != nil {
			return finding.List{wrongSchematic(err)}
		}

		if adds {
			return finding.List{schematicIDWithAdditions.At(finding.Root("schematic"), nil)}
		}

		c.Schematic = text
		c.known = text == image.VanillaSchematic

		return nil
	default:
		parsed, err := schematic.Parse(text)
		if err != nil {
			return finding.List{wrongSchematic(err)}
		}

		c.content = parsed
	}

	c.known = true

	return c.add(added, s.Online.ValueBool() || s.Online.IsUnknown())
}

func wrongSchematic(err error) finding.Finding {
	return invalidSchematic.At(finding.Root("schematic"), finding.Args{"cause": err.Error()})
}

// add adds to the content, and computes the ID.
func (c *chosen) add(added additions, online bool) finding.List {
	var diags finding.List

	content := &c.content.Customization
	c.named = added.extensions

	for i, name := range added.extensions {
		vendored := strings.Contains(name, "/")

		switch {
		case name == "": // not known yet
			continue
		case !vendored && online:
			c.short = append(c.short, name)
		case !vendored:
			diags.Append(extensionName.At(finding.Root("extensions").AtListIndex(i), finding.Args{"name": name}))
		}

		if !slices.Contains(content.SystemExtensions.OfficialExtensions, name) {
			content.SystemExtensions.OfficialExtensions = append(content.SystemExtensions.OfficialExtensions, name)
		}
	}

	content.ExtraKernelArgs = append(slices.Clip(content.ExtraKernelArgs), added.args...)

	if len(diags) > 0 {
		return diags
	}

	return c.identify()
}

// identify computes the ID of the content.
func (c *chosen) identify() finding.List {
	id, err := c.content.ID()
	if err != nil {
		return finding.List{wrongSchematic(err)}
	}

	c.Schematic = id

	return nil
}

// fill puts the choice into the selection.
func (s *selection) fill(c chosen, file string) error {
	s.Platform, s.Architecture = types.StringValue(c.Platform), types.StringValue(c.Architecture)
	s.FactoryURL, s.SchematicID = types.StringValue(c.Factory), types.StringValue(c.Schematic)
	s.ID = types.StringValue(c.File(file))
	s.SchematicContent = types.StringNull()

	if c.known {
		content, err := c.content.Content()
		if err != nil {
			return fmt.Errorf("write schematic: %w", err)
		}

		s.SchematicContent = types.StringValue(content)
	}

	return nil
}
