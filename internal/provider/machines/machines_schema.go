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
	"github.com/talosop/terraform-provider-talosop/internal/provider/system"
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
		MarkdownDescription: tf.MetalOnly + "The " + role + " machines, required, by their names (default of " +
			"`hostname`); workers may be none (`{}`). One that is added joins the cluster; one that is taken out is drained, " +
			"leaves etcd and is reset, and its node is deleted; another name for the same `address` or `uuid` changes nothing.",
		NestedObject: schema.NestedAttributeObject{Attributes: attributes},
	}
}

// machineAttributes are those of single machines alone.
func machineAttributes(install string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		// Required, which the framework would also ask of a machine that is unknown as a whole: see validateAddresses.
		"address": tf.OptionalString("Required: IP address or host name of the machine, with a port unless its Talos API " +
			"is on 50000. A change makes talosop look for the same machine at both addresses; nothing is reset, and another " +
			"machine found there is refused."),
		"talos_endpoint":      endpoint.Attribute(),
		"maintenance_address": endpoint.MaintenanceAddress(),
		"access":              endpoint.Access("How Terraform reaches a worker"),
		"uuid": tf.OptionalString("Hardware UUID (SMBIOS) the machine has to have; other hardware at `address` is refused " +
			"(default: what the first apply saw). Another one exchanges the hardware: see the " +
			"[guide](../guides/metal-machines)."),
		"fingerprint": tf.OptionalString("Fingerprint that the console of the machine shows in maintenance mode, new with " +
			"every boot (base64 of the SHA-256 of its public key): its configuration is sent to no other." + tf.TerraformOnly),
		"rejoin": tf.OptionalBool("Lets a machine without a hardware UUID join again after it was wiped, though nothing " +
			"proves that it is the same one; for one apply."),
		"locked": rollout.Locked(),
		"hostname": hostnameAttribute("its name in `machines`, after that of its pool and a dash in `workers` of " +
			"`talosop_cluster`"),
		"install":        installAgain(install),
		"system_volumes": volumesAgain(strings.TrimSuffix(install, "install") + "system_volumes"),
		"config_patches": tf.OptionalStrings("Patches of this machine's configuration, as `config_patches` of all, applied "+
			"last, for what has no attribute, such as addresses.", tf.MayBeBlank{}),
		"meta": metaAttribute(),
	}
}

func hostnameAttribute(otherwise string) schema.StringAttribute {
	return tf.OptionalString("Host name of the machine, and so the name of its Kubernetes node, which cannot change " +
		"once it has joined. Default: " + otherwise + "; a patch that sets a host name, or `auto: stable`, goes before both.")
}

// PatchFormat describes every list of patches.
const PatchFormat = "Each is YAML: a strategic merge patch of one or several documents, or a list of JSON 6902 " +
	"operations (contracts up to v1.11); an empty one changes nothing."

// patchChange says what a changed patch does.
const patchChange = " A change is applied to machines that run, with a drain and a reboot where the plan says so."

// installAgain is install of a machine in a group; where locates that of the group.
func installAgain(where string) schema.SingleNestedAttribute {
	again := installAttribute("", "")
	again.MarkdownDescription = "How Talos is installed on this machine, as in `" + where + "`, from which the rest is " +
		"taken."
	again.Attributes = tf.AsThere(again.Attributes)

	return again
}

// volumesAgain is system_volumes of a machine in a group; where locates those of the group.
func volumesAgain(where string) schema.MapNestedAttribute {
	again := system.Volumes("", "")
	again.MarkdownDescription = "The volumes of this machine, all of them, as in `" + where + "` and instead of these."
	again.NestedObject.Attributes = tf.AsThere(again.NestedObject.Attributes)

	return again
}

func installAttribute(of, inheritance string) schema.SingleNestedAttribute {
	return tf.OptionalObject(tf.MetalOnly+"How Talos is installed on the disk of "+of+": `disk` or "+
		"`disk_selector` is needed, unless a machine booted from a disk already"+inheritance+"."+clusterhandle.JoinOnly,
		map[string]schema.Attribute{
			"disk": tf.OptionalString("Device to install to, such as `/dev/sda` or `/dev/disk/by-id/…`. Not together with " +
				"`disk_selector`."),
			"disk_selector": tf.OptionalObject("Properties of the disk to install to, as `talosop_machine_info` lists them; "+
				"all that are given have to match. Not together with `disk`.", map[string]schema.Attribute{
				"size":     tf.OptionalString("Size, with a comparison when wanted, such as `4GB`, `> 1TB` or `<= 2TB`."),
				"model":    selectorAttribute("Model, as `/sys/block/<dev>/device/model` has it"),
				"serial":   selectorAttribute("Serial number, as `/sys/block/<dev>/serial` has it"),
				"modalias": selectorAttribute("Modalias, as `/sys/block/<dev>/device/modalias` has it"),
				"uuid":     selectorAttribute("UUID, as `/sys/block/<dev>/uuid` has it"),
				"wwid":     selectorAttribute("World-wide id, as `/sys/block/<dev>/wwid` has it"),
				"type":     tf.OptionalString("Kind of disk: `ssd`, `hdd`, `nvme` or `sd` (memory card)."),
				"bus_path": selectorAttribute("Bus path, such as `/pci0000:00/0000:00:17.0/ata1/…`; may end in `*`"),
			}),
			"wipe": tf.OptionalBool("Wipe the disk before the installation (default `false`)."),
			"image": tf.OptionalString("Installer image, instead of the one that follows from `talos_version`, `schematic` " +
				"and `platform`; its version has to be `talos_version`. Another image upgrades machines as another `platform` " +
				"does."),
			"extra_kernel_args": tf.OptionalStrings("Additional kernel arguments, such as `console=ttyS0`. Machines that boot " +
				"a unified kernel image (UEFI, Talos 1.10 and newer) ignore them: put them into the schematic instead."),
		})
}

func selectorAttribute(what string) schema.StringAttribute {
	return tf.OptionalString(what + ".")
}
