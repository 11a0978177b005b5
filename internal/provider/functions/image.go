package functions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/talosupgrade"
)

func installerImage() pure {
	return pure{
		name: "installer_image",
		definition: function.Definition{
			Summary: "Return the installer image of a Talos version",
			MarkdownDescription: "Returns the reference of the installer image for installs and upgrades by talosop, such " +
				"as `factory.talos.dev/metal-installer/<schematic>:" + machineconfig.CurrentTalos + "`. It does not check that " +
				"the image exists.",
			Parameters: []function.Parameter{
				function.StringParameter{Name: "talos_version",
					MarkdownDescription: "Talos version, such as `" + machineconfig.CurrentTalos + "`."},
				function.StringParameter{
					Name: "schematic", AllowNullValue: true,
					MarkdownDescription: "ID or content of an Image Factory schematic; `null` for plain Talos.",
				},
			},
			VariadicParameter: function.MapParameter{
				Name: "options", ElementType: types.StringType, AllowNullValue: true,
				MarkdownDescription: "Object with optional `platform` (such as `aws`; default `metal`), `secure_boot` (`true` " +
					"for the Secure Boot image) and `registry` (host of another factory or mirror).",
			},
			Return: function.StringReturn{},
		},
		call: callInstallerImage,
	}
}

func callInstallerImage(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
	var (
		version  string
		content  types.String
		options  []types.Map
		wanted   image.Installer
		problems error
	)

	if err := get(ctx, arguments, &version, &content, &options); err != nil {
		return nil, err
	}

	if _, err := machineconfig.ParseTalosVersion(version); err != nil {
		return nil, err
	}

	for i, option := range options {
		problems = errors.Join(problems, readOptions(fmt.Sprintf("options[%d]", i), option, &wanted))
	}

	wanted.Version = machineconfig.CanonicalVersion(version)

	if !content.IsNull() {
		id, err := schematic.IDOf(content.ValueString())
		problems = errors.Join(problems, wrong("schematic", err))
		wanted.Schematic = id
	}

	if problems != nil {
		return nil, problems
	}

	reference, err := wanted.Reference()

	// Version and schematic are valid here: the mistake is in options.
	return types.StringValue(reference), wrong("options", err)
}

// wrong is an error as a mistake in an argument.
func wrong(field string, err error) error {
	if err == nil {
		return nil
	}

	return &machineconfig.FieldError{Field: field, Found: "what cannot be used", Fix: err.Error()}
}

// readOptions reads an object of options.
func readOptions(field string, option types.Map, wanted *image.Installer) error {
	for _, name := range slices.Sorted(maps.Keys(option.Elements())) {
		value, _ := option.Elements()[name].(types.String)
		if value.IsNull() {
			continue
		}

		switch text := value.ValueString(); {
		case name == "platform":
			wanted.Platform = text
		case name == "registry":
			wanted.Registry = text
		case name == "secure_boot" && (text == "true" || text == "false"):
			wanted.SecureBoot = text == "true"
		case name == "secure_boot":
			return &machineconfig.FieldError{Field: field, Found: fmt.Sprintf("secure_boot = %q", text),
				Allowed: "true or false"}
		default:
			return &machineconfig.FieldError{Field: field, Found: fmt.Sprintf("the option %q", name),
				Allowed: "platform, secure_boot and registry"}
		}
	}

	return nil
}

func schematicID() pure {
	return pure{
		name: "schematic_id",
		definition: function.Definition{
			Summary: "Compute the ID of an Image Factory schematic",
			MarkdownDescription: "Returns the ID that the Image Factory assigns to a schematic, without contacting it. The " +
				"factory builds images only for schematics that were uploaded once ([guide](../guides/images)).",
			Parameters: []function.Parameter{function.StringParameter{
				Name: "schematic",
				MarkdownDescription: "Content of the schematic, YAML or JSON, such as `yamlencode({ customization = { … } })`. " +
					"An ID is returned unchanged.",
			}},
			Return: function.StringReturn{},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var content string

			if err := get(ctx, arguments, &content); err != nil {
				return nil, err
			}

			id, err := schematic.IDOf(content)

			return types.StringValue(id), wrong("schematic", err)
		},
	}
}

func upgradePath() pure {
	return pure{
		name: "upgrade_path",
		definition: function.Definition{
			Summary: "List the Talos versions on an upgrade path",
			MarkdownDescription: "Lists the Talos versions on an upgrade path, target included: for every minor version, " +
				"the newest patch release known to this provider version. An empty list means that no upgrade is needed. A " +
				"path that the Talos installers refuse is an error.",
			Parameters: []function.Parameter{
				function.StringParameter{Name: "from", MarkdownDescription: "Running version, such as `v1.11.3`."},
				function.StringParameter{Name: "to", MarkdownDescription: "Target version, the same or a newer one."},
			},
			VariadicParameter: function.StringParameter{
				Name:                "via",
				MarkdownDescription: "Releases to use instead of the newest known ones, as in the argument `upgrade_via`.",
			},
			Return: function.ListReturn{ElementType: types.StringType},
		},
		call: func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error) {
			var (
				from, to string
				via      []string
			)

			if err := get(ctx, arguments, &from, &to, &via); err != nil {
				return nil, err
			}

			steps, err := talosupgrade.Steps(from, to, via)
			if err != nil {
				return nil, err
			}

			values := make([]attr.Value, len(steps))
			for i, step := range steps {
				values[i] = types.StringValue(step)
			}

			return types.ListValueMust(types.StringType, values), nil
		},
	}
}
