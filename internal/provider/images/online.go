package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image/factory"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// askWithin is the timeout for all answers of a factory. It builds no image for them.
const askWithin = time.Minute

// ask has the factory confirm the choice: version, extensions and schematic, which it uploads when its content is
// known. It returns the images of the extensions, the content of a schematic by its ID, and the kernel command line.
func (c *chosen) ask(ctx context.Context) finding.List {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()

	client := factory.Client{Base: c.Factory, HTTP: http.DefaultClient}

	if diags := c.askVersions(ctx, client); len(diags) > 0 {
		return diags
	}

	if diags := c.askSchematic(ctx, client); len(diags) > 0 {
		return diags
	}

	if diags := c.askExtensions(ctx, client); len(diags) > 0 {
		return diags
	}

	if diags := c.upload(ctx, client); len(diags) > 0 {
		return diags
	}

	file := "cmdline-" + c.Platform + "-" + c.Architecture
	if c.SecureBoot {
		file += "-secureboot"
	}

	line, err := client.Cmdline(ctx, c.Schematic, c.Version, file)
	if err != nil {
		return c.unable(err)
	}

	c.line = line

	return nil
}

func (c *chosen) unable(err error) finding.List {
	return finding.List{factoryFailed.At(
		finding.Root("factory_url"), finding.Args{"factory": c.Factory, "cause": err.Error()})}
}

func (c *chosen) askVersions(ctx context.Context, client factory.Client) finding.List {
	there, err := client.Versions(ctx)

	switch {
	case err != nil:
		return c.unable(err)
	case slices.Contains(there, c.Version):
		return nil
	}

	near := slices.DeleteFunc(there, func(v string) bool { return versions.MinorsBetween(v, c.Version) != 0 })

	return finding.List{versionUnknown.At(
		finding.Root("talos_version"), finding.Args{"version": c.Version, "factory": c.Factory, "known": near})}
}

// askSchematic reads the content of a schematic with a known ID.
func (c *chosen) askSchematic(ctx context.Context, client factory.Client) finding.List {
	if c.known {
		return nil
	}

	content, err := client.Schematic(ctx, c.Schematic)

	switch {
	case errors.Is(err, factory.ErrNotFound):
		return finding.List{schematicUnknown.At(
			finding.Root("schematic"), finding.Args{"schematic": c.Schematic, "factory": c.Factory})}
	case err != nil:
		return c.unable(err)
	}

	if c.content, err = schematic.Parse(content); err != nil {
		return c.unable(fmt.Errorf("read schematic %s: %w", c.Schematic, err))
	}

	c.known = true

	return nil
}

// askExtensions looks up the extensions. It leaves unlisted ones of a schematic to the factory, which knows some by
// former names.
func (c *chosen) askExtensions(ctx context.Context, client factory.Client) finding.List {
	wanted := c.content.Customization.SystemExtensions.OfficialExtensions
	c.extensions = map[string]string{}

	if len(wanted) == 0 {
		return nil
	}

	there, err := client.Extensions(ctx, c.Version)
	if err != nil {
		return c.unable(err)
	}

	var unknown []string

	for i, name := range wanted {
		at := slices.IndexFunc(there, func(e factory.Extension) bool {
			_, short, _ := strings.Cut(e.Name, "/")

			return e.Name == name || slices.Contains(c.short, name) && short == name
		})

		switch {
		case at >= 0:
			wanted[i] = there[at].Name
			c.extensions[there[at].Name] = there[at].Image()
		case slices.Contains(c.named, name):
			unknown = append(unknown, name)
		}
	}

	if len(unknown) > 0 {
		return finding.List{extensionsUnknown.At(finding.Root("extensions"), finding.Args{"extensions": unknown,
			"factory": c.Factory, "version": c.Version, "known": namesOf(there)})}
	}

	return c.identify()
}

func namesOf(extensions []factory.Extension) []string {
	var names []string
	for _, e := range extensions {
		names = append(names, e.Name)
	}

	return names
}

// upload uploads the schematic to the factory, whose ID has to match the computed one.
func (c *chosen) upload(ctx context.Context, client factory.Client) finding.List {
	content, err := c.content.Content()
	if err != nil {
		return c.unable(err)
	}

	id, err := client.Upload(ctx, content)

	switch {
	case err != nil:
		return c.unable(err)
	case id != c.Schematic:
		return c.unable(fmt.Errorf("the factory makes schematic %s of the content, and not %s: an Enterprise factory puts "+
			"the owner into it, whose content with owner has that id", id, c.Schematic))
	}

	return nil
}
