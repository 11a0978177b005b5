package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// machine reads the settings of one machine, with those of its group filled in.
func (g *Group) machine(ctx context.Context, r *tf.Reader, one machineModel) machineconfig.Machine {
	install, _ := g.installOf(ctx, r, one)

	return machineconfig.Machine{
		Role:        machineconfig.Role(g.Role),
		Mode:        machineconfig.Metal,
		Hostname:    r.Text(one.Hostname),
		Install:     install,
		PoolPatches: r.Texts(g.ConfigPatches),
		Patches:     r.Texts(one.ConfigPatches),
	}
}

// installOf merges the install settings of a machine over those of its group. A
// disk and a disk selector say the same thing, so the machine's own choice of one
// replaces the pool's of the other. ownImage tells that the installer image was given.
func (g *Group) installOf(ctx context.Context, r *tf.Reader, one machineModel) (install machineconfig.Install, ownImage bool) {
	pool, _ := tf.Object[installModel](ctx, r, g.Install)
	own, _ := tf.Object[installModel](ctx, r, one.Install)

	merged := pool
	if !own.Disk.IsNull() || !own.DiskSelector.IsNull() {
		merged.Disk, merged.DiskSelector = own.Disk, own.DiskSelector
	}

	if !own.Wipe.IsNull() {
		merged.Wipe = own.Wipe
	}

	if !own.Image.IsNull() {
		merged.Image = own.Image
	}

	if !own.ExtraKernelArgs.IsNull() {
		merged.ExtraKernelArgs = own.ExtraKernelArgs
	}

	install = machineconfig.Install{
		Disk:            r.Text(merged.Disk),
		Wipe:            r.Truth(merged.Wipe, false),
		Image:           g.installer(r, merged.Image),
		ExtraKernelArgs: r.Texts(merged.ExtraKernelArgs),
	}

	if s, ok := tf.Object[diskSelectorModel](ctx, r, merged.DiskSelector); ok {
		install.DiskSelector = &machineconfig.DiskSelector{
			Size: r.Text(s.Size), Model: r.Text(s.Model), Serial: r.Text(s.Serial), Modalias: r.Text(s.Modalias),
			UUID: r.Text(s.UUID), WWID: r.Text(s.WWID), Type: r.Text(s.Type), BusPath: r.Text(s.BusPath),
		}
	}

	return install, !merged.Image.IsNull()
}

// installer names the image that is installed. What makes it up is checked where
// the values are, so an image that cannot be named yet is left empty here.
func (g *Group) installer(r *tf.Reader, given types.String) string {
	if !given.IsNull() {
		return r.Text(given)
	}

	reference, err := image.Installer{
		Version: r.Text(g.TalosVersion), Schematic: r.Text(g.Schematic), Platform: r.Text(g.Platform),
	}.Reference()
	if err != nil {
		return ""
	}

	return reference
}

// installTarget names the disk as a person would.
func installTarget(i machineconfig.Install) string {
	if i.DiskSelector == nil {
		return i.Disk
	}

	var parts []string

	for _, property := range []struct{ Name, Value string }{
		{"size", i.DiskSelector.Size}, {"type", i.DiskSelector.Type}, {"model", i.DiskSelector.Model},
		{"serial", i.DiskSelector.Serial}, {"modalias", i.DiskSelector.Modalias}, {"uuid", i.DiskSelector.UUID},
		{"wwid", i.DiskSelector.WWID}, {"bus path", i.DiskSelector.BusPath},
	} {
		if property.Value != "" {
			parts = append(parts, fmt.Sprintf("%s %s", property.Name, property.Value))
		}
	}

	return "the disk with " + strings.Join(parts, ", ")
}

// sortedNames returns the names of machines in order.
func sortedNames[T any](machines map[string]T) []string {
	names := make([]string, 0, len(machines))
	for name := range machines {
		names = append(names, name)
	}

	slices.Sort(names)

	return names
}
