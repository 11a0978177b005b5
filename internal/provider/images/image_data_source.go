package images

import (
	"context"
	"maps"
	"path"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/image/netboot"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// NewImageDataSource is the constructor of talosop_image.
func NewImageDataSource() datasource.DataSource {
	return &providerdata.DataSource[imageModel]{
		Name: "image",
		Description: "Image Factory images of a Talos version: the installer, and the boot media of a platform. " +
			"Version and schematic determine all of it without a network; with `online`, the factory confirms that the " +
			"images exist ([guide](../guides/images)).",
		Attributes: imageAttributes,
		Check: func(_ context.Context, config *imageModel) diag.Diagnostics {
			_, found := config.choose()

			return tf.Diagnostics(found)
		},
		Look: lookUpImages,
	}
}

// imageModel is the data source talosop_image.
type imageModel struct {
	selection

	Extensions      types.List `tfsdk:"extensions"`
	ExtraKernelArgs types.List `tfsdk:"extra_kernel_args"`

	Installer       types.String `tfsdk:"installer"`
	ISO             types.String `tfsdk:"iso"`
	DiskImage       types.String `tfsdk:"disk_image"`
	UKI             types.String `tfsdk:"uki"`
	Kernel          types.String `tfsdk:"kernel"`
	Initramfs       types.String `tfsdk:"initramfs"`
	CmdlineURL      types.String `tfsdk:"kernel_cmdline_url"`
	Cmdline         types.String `tfsdk:"kernel_cmdline"`
	PXE             types.String `tfsdk:"pxe"`
	ExtensionImages types.Map    `tfsdk:"extension_images"`
}

func imageAttributes() map[string]resource.Attribute {
	attributes := map[string]resource.Attribute{
		"extensions": tf.OptionalStrings("System extensions to add to the content of the schematic, such as " +
			"`siderolabs/iscsi-tools`; with `online`, `iscsi-tools` also works."),
		"extra_kernel_args": tf.OptionalStrings("Kernel arguments to add to the content of the schematic."),
		"installer": tf.ComputedString("Reference of the container image that installs and upgrades machines; null on " +
			"platforms without an installer image."),
		"iso":        tf.ComputedString("URL of the ISO image; null on platforms that do not boot one."),
		"disk_image": tf.ComputedString("URL of the disk image; null on platforms that do not boot one."),
		"uki": tf.ComputedString("URL of the unified kernel image, an EFI program with kernel, initramfs " +
			"and arguments."),
		"kernel":             tf.ComputedString("URL of the kernel."),
		"initramfs":          tf.ComputedString("URL of the initramfs, which includes the system extensions."),
		"kernel_cmdline_url": tf.ComputedString("URL of the kernel arguments."),
		"kernel_cmdline": tf.ComputedString("Kernel arguments. Null without `online` if the schematic content is unknown " +
			"or has an overlay, and on platforms that do not boot over the network."),
		"pxe": tf.ComputedString("URL of the iPXE script that boots from the factory; null on platforms that do not boot " +
			"over the network."),
		"extension_images": tf.ComputedStringMap("Images of the system extensions for this version, by name; null " +
			"without `online`."),
	}

	maps.Copy(attributes, selectionAttributes(assets.Platforms()))

	return attributes
}

// choose reads the configuration without I/O.
func (m imageModel) choose() (chosen, finding.List) {
	r := &tf.Reader{}

	return m.selection.choose(additions{r.Texts(m.Extensions), r.Texts(m.ExtraKernelArgs)})
}

// lookUpImages fills in the images; the factory is asked with `online` only.
func lookUpImages(ctx context.Context, _ *providerdata.ProviderData, config *imageModel) diag.Diagnostics {
	c, diags := config.choose()
	if !diags.HasError() && config.Online.ValueBool() {
		diags.Append(c.ask(ctx)...)
	}

	if !diags.HasError() {
		if err := config.tell(c); err != nil {
			diags.Append(finding.Bug(err.Error()))
		}
	}

	return tf.Diagnostics(diags)
}

// tell fills in the results of the choice.
func (m *imageModel) tell(c chosen) error {
	found, err := c.Assets()
	if err != nil {
		return err
	}

	m.Installer, m.ISO = tf.TextOrNull(found.Installer), tf.TextOrNull(found.ISO)
	m.DiskImage, m.PXE = tf.TextOrNull(found.DiskImage), tf.TextOrNull(found.PXE)
	m.Kernel, m.Initramfs = types.StringValue(found.Kernel), types.StringValue(found.Initramfs)
	m.UKI, m.CmdlineURL = types.StringValue(found.UKI), types.StringValue(found.Cmdline)
	m.Cmdline = tf.TextOrNull(c.cmdline())
	m.ExtensionImages = textMapOrNull(c.extensions)

	return m.fill(c, path.Base(found.UKI))
}

// cmdline is the kernel command line, from the factory or computed; empty when unknown.
func (c chosen) cmdline() string {
	if c.line != "" || !c.known {
		return c.line
	}

	line, ok := netboot.Cmdline(c.Image, c.content)
	if !ok {
		return ""
	}

	return line
}

func textMapOrNull(texts map[string]string) types.Map {
	if texts == nil {
		return types.MapNull(types.StringType)
	}

	values := map[string]attr.Value{}
	for name, text := range texts {
		values[name] = types.StringValue(text)
	}

	return types.MapValueMust(types.StringType, values)
}
