package images

import (
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

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

// NewBootDataSource is the constructor of talosop_boot_assets.
func NewBootDataSource() datasource.DataSource {
	return &providerdata.DataSource[bootModel]{
		Name: "boot_assets",
		Description: "Files that boot machines over the network into maintenance mode: kernel, initramfs, ISO " +
			"image, iPXE scripts, and Matchbox profiles and groups by MAC address. It serves nothing: pass the texts to the " +
			"servers of your network ([guide](../guides/images)).",
		Attributes: bootAttributes,
		Check: func(ctx context.Context, config *bootModel) diag.Diagnostics {
			_, _, found := config.read(ctx)

			return tf.Diagnostics(found)
		},
		Look: lookUpBootAssets,
	}
}

// bootModel is the data source talosop_boot_assets.
type bootModel struct {
	selection

	KernelArgs types.List   `tfsdk:"kernel_args"`
	AssetsURL  types.String `tfsdk:"assets_url"`
	Machines   types.Map    `tfsdk:"machines"`

	ISO       types.String `tfsdk:"iso"`
	Kernel    types.String `tfsdk:"kernel"`
	Initramfs types.String `tfsdk:"initramfs"`
	Cmdline   types.String `tfsdk:"kernel_cmdline"`
	Script    types.String `tfsdk:"ipxe_script"`
	Downloads types.Map    `tfsdk:"downloads"`
	Boot      types.Map    `tfsdk:"boot"`
}

// machineModel is one machine that boots over the network.
type machineModel struct {
	MAC          types.String `tfsdk:"mac_address"`
	Architecture types.String `tfsdk:"architecture"`
	KernelArgs   types.List   `tfsdk:"kernel_args"`
}

// bootType is what a machine boots.
var bootType = tf.ObjectOf(machineBootAttributes())

func bootAttributes() map[string]resource.Attribute {
	attributes := map[string]resource.Attribute{
		"kernel_args": tf.OptionalStrings("Additional kernel arguments of all machines, such as `ip=dhcp`; `-name` " +
			"removes one. They apply until Talos is installed. Put permanent arguments in the schematic."),
		"assets_url": tf.OptionalString("Base URL of kernel and initramfs on your server, with the paths of `downloads`, " +
			"such as `http://10.0.0.2:8080/assets`. Default: the factory."),
		"machines": tf.OptionalObjectMap("Machines that boot, by name: letters, digits, dots, dashes and underscores, "+
			"because Matchbox uses file names.", map[string]resource.Attribute{
			"mac_address": resource.StringAttribute{
				// If it were required, the framework would demand it for machines that are unknown as a whole.
				Optional:            true,
				MarkdownDescription: "Required: MAC address of the boot interface, such as `52:54:00:12:34:56`.",
			},
			"architecture": tf.OptionalString("`amd64` or `arm64`. Default: `architecture` of the data source."),
			"kernel_args":  tf.OptionalStrings("Additional kernel arguments of this machine, after those of all machines."),
		}),
		"iso": tf.ComputedString("URL of the ISO image; null on platforms that do not boot one."),
		"kernel": tf.ComputedString("URL of the kernel; with `secure_boot`, of the signed image that contains everything " +
			"(UKI)."),
		"initramfs": tf.ComputedString("URL of the initramfs, which includes the system extensions; null with " +
			"`secure_boot`."),
		"kernel_cmdline": tf.ComputedString("Kernel arguments, including those of the schematic and `kernel_args`."),
		"ipxe_script":    tf.ComputedString("iPXE script for machines that are not in `machines`."),
		"downloads": tf.ComputedStringMap("Factory URLs of the files that machines load, by their path below " +
			"`assets_url`."),
		"boot": tf.ComputedObjectMap("Boot data of each of `machines`, by name.", machineBootAttributes()),
	}

	maps.Copy(attributes, selectionAttributes(netboot.Platforms()))

	return attributes
}

func machineBootAttributes() map[string]resource.Attribute {
	return map[string]resource.Attribute{
		"mac_address":      tf.ComputedString("MAC address in the format of Matchbox: lower case, with colons."),
		"kernel":           tf.ComputedString("URL of the kernel."),
		"initramfs":        tf.ComputedString("URL of the initramfs; null with `secure_boot`."),
		"kernel_cmdline":   tf.ComputedString("Kernel arguments."),
		"ipxe_script":      tf.ComputedString("iPXE script."),
		"matchbox_profile": tf.ComputedString("Matchbox profile (JSON), for `profiles/<name>.json`."),
		"matchbox_group":   tf.ComputedString("Matchbox group (JSON), for `groups/<name>.json`."),
	}
}

// machine is one machine after decoding.
type machine struct {
	name, mac, architecture string
	args                    []string
}

// read reads the configuration without I/O.
func (m bootModel) read(ctx context.Context) (chosen, []machine, finding.List) {
	c, diags := m.selection.choose(additions{})

	if c.Platform != "" && slices.Contains(assets.Platforms(), c.Platform) &&
		!slices.Contains(netboot.Platforms(), c.Platform) {
		diags.Append(platformWithoutNetboot.At(finding.Root("platform"),
			finding.Args{"platform": c.Platform, "allowed": netboot.Platforms()}))
	}

	if text := m.AssetsURL.ValueString(); !m.AssetsURL.IsNull() && !m.AssetsURL.IsUnknown() &&
		(assets.Image{Factory: text}).Check() != nil {
		diags.Append(invalidAssetsURL.At(finding.Root("assets_url"), finding.Args{"url": text}))
	}

	machines, more := m.readMachines(ctx, c)

	return c, machines, append(diags, more...)
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (m bootModel) readMachines(ctx context.Context, c chosen) ([]machine, finding.List) {
	var (
		diags    finding.List
		machines []machine
		r        = &tf.Reader{}
		taken    = map[string]string{}
	)

	all := tf.Objects[machineModel](ctx, r, m.Machines)

	for _, name := range slices.Sorted(maps.Keys(all)) {
		one, at := all[name], finding.Root("machines").AtMapKey(name)
		read := machine{name: name, architecture: r.Text(one.Architecture), args: r.Texts(one.KernelArgs)}

		if !namePattern.MatchString(name) {
			diags.Append(invalidMachineName.At(at, finding.Args{"name": name}))
		}

		if one.Architecture.IsNull() {
			read.architecture = c.Architecture
		}

		other := c.Image
		other.Architecture = read.architecture

		if wrong := other.Check(); wrong != nil && wrong.Field == "architecture" && !one.Architecture.IsNull() {
			diags.Append(invalidImage.At(at.AtName("architecture"),
				finding.Args{"found": wrong.Found, "allowed": wrong.Allowed}))
		}

		if !one.MAC.IsUnknown() {
			diags.Append(read.readMAC(at.AtName("mac_address"), one.MAC.ValueString(), taken)...)
		}

		machines = append(machines, read)
	}

	return machines, append(diags, tf.Findings(r.Diags)...)
}

// readMAC reads an address that no other machine has.
func (m *machine) readMAC(at finding.Path, text string, taken map[string]string) finding.List {
	mac, err := netboot.CanonicalMAC(text)
	if err != nil {
		return finding.List{invalidMAC.At(at, finding.Args{"value": text})}
	}

	if other, ok := taken[mac]; ok {
		return finding.List{duplicateMAC.At(at, finding.Args{"other": other})}
	}

	taken[mac], m.mac = m.name, mac

	return nil
}

// lookUpBootAssets fills in the files; the factory is asked with `online` only.
func lookUpBootAssets(ctx context.Context, _ *providerdata.ProviderData, config *bootModel) diag.Diagnostics {
	c, machines, diags := config.read(ctx)
	if !diags.HasError() && config.Online.ValueBool() {
		diags.Append(c.ask(ctx)...)
	}

	if !diags.HasError() {
		diags.Append(config.tell(c, machines)...)
	}

	return tf.Diagnostics(diags)
}

// tell fills in the results of the choice.
func (m *bootModel) tell(c chosen, machines []machine) finding.List {
	if c.cmdline() == "" {
		return finding.List{schematicWithoutArguments.At(finding.Root("schematic"), nil)}
	}

	if diags := c.refuseOtherArguments(machines); len(diags) > 0 {
		return diags
	}

	b := booter{chosen: c, base: m.AssetsURL.ValueString(), args: (&tf.Reader{}).Texts(m.KernelArgs),
		downloads: map[string]string{}}

	found, boot, err := b.boot(machine{architecture: c.Architecture})
	if err != nil {
		return finding.List{finding.Bug(err.Error())}
	}

	m.ISO, m.Kernel, m.Initramfs = tf.TextOrNull(found.ISO), types.StringValue(boot.Kernel), tf.TextOrNull(boot.Initramfs)
	m.Cmdline, m.Script = types.StringValue(boot.Cmdline), types.StringValue(boot.IPXE())

	values := map[string]attr.Value{}

	for _, machine := range machines {
		if values[machine.name], err = b.machine(machine); err != nil {
			return finding.List{finding.Bug(err.Error())}
		}
	}

	m.Boot, m.Downloads = types.MapValueMust(bootType, values), textMapOrNull(b.downloads)

	if err := m.fill(c, path.Base(found.PXE)); err != nil {
		return finding.List{finding.Bug(err.Error())}
	}

	return nil
}

// refuseOtherArguments refuses machines of another architecture without known kernel arguments.
func (c chosen) refuseOtherArguments(machines []machine) finding.List {
	var diags finding.List

	for _, m := range machines {
		other := c.Image
		other.Architecture = m.architecture

		if _, ok := netboot.Cmdline(other, c.content); !ok && m.architecture != c.Architecture {
			diags.Append(otherArchitecture.At(finding.Root("machines").AtMapKey(m.name).AtName("architecture"),
				finding.Args{"architecture": m.architecture, "allowed": c.Architecture}))
		}
	}

	return diags
}

// booter computes what machines boot.
type booter struct {
	chosen

	// base is where files are served, empty for the factory, and args are the kernel arguments of all machines.
	base string
	args []string
	// downloads collects the files.
	downloads map[string]string
}

// boot is what a machine boots.
func (b booter) boot(m machine) (assets.Assets, netboot.Boot, error) {
	c := b.chosen
	if c.Architecture != m.architecture {
		// The kernel arguments of the factory are for another architecture; its schematic is known by now.
		c.Architecture, c.line = m.architecture, ""
	}

	found, err := c.Assets()
	if err != nil {
		return found, netboot.Boot{}, err
	}

	line, _ := netboot.With(c.cmdline(), b.args)
	line, _ = netboot.With(line, m.args)
	boot := netboot.Boot{Kernel: b.served(found.Kernel), Initramfs: b.served(found.Initramfs), Cmdline: line}

	if c.SecureBoot {
		boot.Kernel, boot.Initramfs = b.served(found.UKI), ""
		delete(b.downloads, c.File(path.Base(found.Kernel)))
		delete(b.downloads, c.File(path.Base(found.Initramfs)))
	}

	return found, boot, nil
}

// served is the URL at which machines load a file of the factory.
func (b booter) served(url string) string {
	file := b.File(path.Base(url))
	b.downloads[file] = url

	if b.base == "" {
		return url
	}

	return strings.TrimSuffix(b.base, "/") + "/" + file
}

// machine is what a machine boots, as a value.
func (b booter) machine(m machine) (attr.Value, error) {
	_, boot, err := b.boot(m)
	if err != nil {
		return nil, err
	}

	profile, err := boot.Profile(m.name)
	if err != nil {
		return nil, err
	}

	group, err := netboot.Group(m.name, m.mac)
	if err != nil {
		return nil, err
	}

	return types.ObjectValueMust(bootType.AttrTypes, map[string]attr.Value{
		"mac_address": types.StringValue(m.mac), "kernel": types.StringValue(boot.Kernel),
		"initramfs": tf.TextOrNull(boot.Initramfs), "kernel_cmdline": types.StringValue(boot.Cmdline),
		"ipxe_script": types.StringValue(boot.IPXE()), "matchbox_profile": types.StringValue(profile),
		"matchbox_group": types.StringValue(group),
	}), nil
}
