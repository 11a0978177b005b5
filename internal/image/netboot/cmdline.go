// Package netboot writes what boots machines over the network: kernel command lines, scripts of iPXE, profiles and
// groups of Matchbox. Pure.
package netboot

import (
	"slices"

	"github.com/siderolabs/go-procfs/procfs"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/imager/quirks"
	"github.com/siderolabs/talos/pkg/machinery/kernel"
	"github.com/siderolabs/talos/pkg/machinery/meta"
	"github.com/siderolabs/talos/pkg/machinery/platforms"

	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
)

// platformArgs are the arguments of a platform, by architecture where they differ; only those that boot over the
// network are here (Talos 1.13 and 1.14, runtime/v1alpha1/platform, KernelArgs of each). net.ifnames=0 keeps the names
// of interfaces that the kernel gives.
var platformArgs = map[string]map[string][]string{
	"metal": {platforms.ArchAmd64: {"console=tty0"}, platforms.ArchArm64: {"console=ttyAMA0", "console=tty0"}},
	"equinixMetal": {
		platforms.ArchAmd64: {"console=ttyS1,115200n8"}, platforms.ArchArm64: {"console=ttyAMA0,115200"},
	},
	"nocloud":   {"": {"console=tty1", "console=ttyS0", "net.ifnames=0"}},
	"openstack": {"": {"console=tty1", "console=ttyS0", "net.ifnames=0"}},
	"vultr":     {"": {"net.ifnames=0"}},
}

// Platforms are those whose machines boot over the network.
func Platforms() []string {
	return slices.DeleteFunc(assets.Platforms(), func(name string) bool { return platformArgs[name] == nil })
}

// Cmdline is the kernel command line of an image, with the arguments of its schematic, as the factory makes it (Talos
// 1.14, pkg/imager, buildCmdline). ok is false where it cannot be known: on platforms that do not boot over the
// network, and with an overlay, which brings arguments of its own.
func Cmdline(i assets.Image, content schematic.Schematic) (line string, ok bool) {
	args, known := platformArgs[i.Platform]
	if !known || content.Overlay.Name != "" {
		return "", false
	}

	version := quirks.New(i.Version)
	cmdline := procfs.NewCmdline("")
	cmdline.Append(constants.KernelParamPlatform, i.Platform)
	cmdline.SetAll(append(slices.Clone(args[""]), args[i.Architecture]...))

	added := kernel.DefaultArgs(version)
	if i.SecureBoot {
		added = append(added, kernel.SecureBootArgs(version)...)
	}

	if cmdline.AppendAll(added) != nil {
		return "", false
	}

	if values := metaOf(content); len(values) > 0 {
		cmdline.Append(constants.KernelParamEnvironment,
			constants.MetaValuesEnvVar+"="+values.Encode(version.SupportsCompressedEncodedMETA()))
	}

	return With(cmdline.String(), content.Customization.ExtraKernelArgs)
}

// With is a command line with more arguments. As in a schematic, arguments console and talos.platform replace
// earlier ones, and an argument with a leading dash is removed.
func With(line string, args []string) (longer string, ok bool) {
	cmdline := procfs.NewCmdline(line)

	err := cmdline.AppendAll(args, procfs.WithOverwriteArgs("console"),
		procfs.WithOverwriteArgs(constants.KernelParamPlatform), procfs.WithDeleteNegatedArgs())

	return cmdline.String(), err == nil
}

func metaOf(content schematic.Schematic) meta.Values {
	var values meta.Values
	for _, value := range content.Customization.Meta {
		values = append(values, meta.Value{Key: value.Key, Value: value.Value})
	}

	return values
}
