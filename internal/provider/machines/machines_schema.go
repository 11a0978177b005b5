package machines

import (
	"maps"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/endpoint"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type machineModel struct {
	Address       types.String `tfsdk:"address"`
	TalosEndpoint types.String `tfsdk:"talos_endpoint"`
	WaitsAt       types.String `tfsdk:"maintenance_address"`
	Access        types.String `tfsdk:"access"`
	UUID          types.String `tfsdk:"uuid"`
	Fingerprint   types.String `tfsdk:"fingerprint"`
	Rejoin        types.Bool   `tfsdk:"rejoin"`
	Locked        types.Bool   `tfsdk:"locked"`
	Reset         types.Object `tfsdk:"reset"`
	Hostname      types.String `tfsdk:"hostname"`
	Install       types.Object `tfsdk:"install"`
	SystemVolumes types.Map    `tfsdk:"system_volumes"`
	ConfigPatches types.List   `tfsdk:"config_patches"`
	Meta          types.Map    `tfsdk:"meta"`

	settings.MachineModel
}

func (m machineModel) place() endpoint.Place {
	return endpoint.Place{Address: m.Address, TalosEndpoint: m.TalosEndpoint}
}

// machineName is the format of machine names: they appear in messages, in the names of steps and, without a
// hostname, as the hostname, which the validation checks.
var machineName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

func machinesAttribute(role, install string) schema.MapNestedAttribute {
	attributes := machineAttributes(install)
	maps.Copy(attributes, settings.Attributes(settings.Machine))

	return schema.MapNestedAttribute{
		Optional: true,
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(machineName,
				"a machine name has at most 63 letters, digits, dots, dashes and underscores, and begins and ends with a letter "+
					"or digit")),
		},
		MarkdownDescription: tf.MetalOnly + "The " + role + " machines by name (default of `hostname`), which join the " +
			"cluster; required, workers may be `{}`. Removed machines are drained, leave etcd and are reset, and their " +
			"nodes deleted; a new name for the same `address` or `uuid` changes nothing.",
		NestedObject: schema.NestedAttributeObject{Attributes: attributes},
	}
}

// machineAttributes are those of single machines alone.
func machineAttributes(install string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		// Required, which the framework would also ask of a machine that is unknown as a whole: see validateAddresses.
		"address": tf.OptionalString("Required: IP address or hostname of the machine, with the port if its Talos API is " +
			"not on 50000. A change makes talosop look for the same machine at both addresses. It resets nothing, and the " +
			"apply refuses another machine."),
		"talos_endpoint":      endpoint.Attribute(),
		"maintenance_address": endpoint.MaintenanceAddress(),
		"access":              endpoint.Access("How Terraform reaches a worker"),
		"uuid": tf.OptionalString("Hardware UUID (SMBIOS) of the machine; the provider refuses other hardware at " +
			"`address`. Default: the UUID that the first apply observed. Another one exchanges the hardware: see the " +
			"[guide](../guides/metal-machines)."),
		"fingerprint": tf.OptionalString("Fingerprint on the console of the machine in maintenance mode: base64 of the " +
			"SHA-256 of its public key, new at every boot. The provider sends the configuration to no other machine." +
			tf.TerraformOnly),
		"rejoin": tf.OptionalBool("Lets a machine without a hardware UUID rejoin after a wipe, for one apply. Nothing " +
			"proves that it is the same machine."),
		"locked": rollout.Locked(),
		"reset":  resetAgain(strings.TrimSuffix(install, "install") + "reset"),
		"hostname": hostnameAttribute("its name in `machines`, prefixed with the pool and a dash in `workers` of " +
			"`talosop_cluster`"),
		"install":        installAgain(install),
		"system_volumes": volumesAgain(strings.TrimSuffix(install, "install") + "system_volumes"),
		"config_patches": tf.OptionalStrings("Patches of this machine's configuration, applied last, in the format of "+
			"the shared `config_patches`. Use them for settings without an attribute, such as addresses.", tf.MayBeBlank{}),
		"meta": metaAttribute(),
	}
}

func hostnameAttribute(otherwise string) schema.StringAttribute {
	return tf.OptionalString("Hostname of the machine and name of its Kubernetes node, which cannot change after it " +
		"joins. Default: " + otherwise + ". A patch that sets a hostname, or `auto: stable`, takes precedence over both.")
}

// PatchFormat describes every list of patches.
const PatchFormat = "Each is YAML: a strategic merge patch of one or more documents, or JSON 6902 operations " +
	"(contracts up to v1.11); empty patches change nothing."

// patchChange says what a changed patch does.
const patchChange = " A change is applied to running machines, with a drain and a reboot if the plan says so."

// installAgain is install of a machine in a group; where locates that of the group.
func installAgain(where string) schema.SingleNestedAttribute {
	again := installAttribute("", "")
	again.MarkdownDescription = "How Talos is installed on this machine, as in `" + where + "`, which provides the " +
		"other values."
	again.Attributes = tf.AsThere(again.Attributes)

	return again
}

// volumesAgain is system_volumes of a machine in a group; where locates those of the group.
func volumesAgain(where string) schema.MapNestedAttribute {
	again := systemVolumes("", "")
	again.MarkdownDescription = "The volumes of this machine, all of them, as in `" + where + "`, which they replace."
	again.NestedObject.Attributes = tf.AsThere(again.NestedObject.Attributes)

	return again
}

func installAttribute(of, inheritance string) schema.SingleNestedAttribute {
	return tf.OptionalObject(tf.MetalOnly+"Installation of Talos on the disk of "+of+": needs `disk` or "+
		"`disk_selector`, unless a machine already booted from one"+inheritance+"."+clusterhandle.JoinOnly,
		map[string]schema.Attribute{
			"disk": tf.OptionalString("Device to install to, such as `/dev/sda` or `/dev/disk/by-id/…`. Not together with " +
				"`disk_selector`."),
			"disk_selector": tf.OptionalObject("Properties of the disk to install to, as `talosop_machine_info` lists them; "+
				"all of them must match. Not together with `disk`.", map[string]schema.Attribute{
				"size":     tf.OptionalString("Size, with an optional comparison, such as `4GB`, `> 1TB` or `<= 2TB`."),
				"model":    selectorAttribute("Model, as in `/sys/block/<dev>/device/model`"),
				"serial":   selectorAttribute("Serial number, as in `/sys/block/<dev>/serial`"),
				"modalias": selectorAttribute("Modalias, as in `/sys/block/<dev>/device/modalias`"),
				"uuid":     selectorAttribute("UUID, as in `/sys/block/<dev>/uuid`"),
				"wwid":     selectorAttribute("World-wide ID, as in `/sys/block/<dev>/wwid`"),
				"type":     tf.OptionalString("Kind of disk: `ssd`, `hdd`, `nvme` or `sd` (memory card)."),
				"bus_path": selectorAttribute("Bus path, such as `/pci0000:00/0000:00:17.0/ata1/…`; may end in `*`"),
			}),
			"wipe": tf.OptionalBool("Wipe the disk before the installation (default `false`)."),
			"image": tf.OptionalString("Installer image that replaces the one from `talos_version`, `schematic` and " +
				"`platform`; its version must equal `talos_version`. A different image upgrades machines, as a different " +
				"`platform` does."),
			"extra_kernel_args": tf.OptionalStrings("Additional kernel arguments, such as `console=ttyS0`. Machines that " +
				"boot a unified kernel image (UEFI, Talos 1.10 and newer) ignore them: put them in the schematic instead."),
		})
}

func selectorAttribute(what string) schema.StringAttribute {
	return tf.OptionalString(what + ".")
}
