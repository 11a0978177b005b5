package machineinfo

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// Model is the data source talosop_machine_info.
type Model struct {
	ID           types.String `tfsdk:"id"`
	Address      types.String `tfsdk:"address"`
	Cluster      types.Object `tfsdk:"cluster"`
	Fingerprint  types.String `tfsdk:"fingerprint"`
	Maintenance  types.Bool   `tfsdk:"maintenance"`
	Stage        types.String `tfsdk:"stage"`
	Ready        types.Bool   `tfsdk:"ready"`
	TalosVersion types.String `tfsdk:"talos_version"`
	Platform     types.String `tfsdk:"platform"`
	Hostname     types.String `tfsdk:"hostname"`
	Certificate  types.String `tfsdk:"certificate_fingerprint"`
	UUID         types.String `tfsdk:"uuid"`
	Manufacturer types.String `tfsdk:"manufacturer"`
	ProductName  types.String `tfsdk:"product_name"`
	SerialNumber types.String `tfsdk:"serial_number"`
	Addresses    types.List   `tfsdk:"addresses"`
	Disks        types.List   `tfsdk:"disks"`
	Schematic    types.String `tfsdk:"schematic"`
	Extensions   types.List   `tfsdk:"extensions"`
}

func machineInfoAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("The same as `address`."),
		"address": tf.RequiredString("IP address (v4 or v6, without brackets) or hostname of the machine. Its Talos API " +
			"is on port 50000."),
		"cluster": tf.OptionalObject("Handle of the cluster that the machine belongs to: `cluster` of "+
			"`talosop_control_plane` or `talosop_cluster`, or an object that you write. Without it, only machines in "+
			"maintenance mode answer.",
			clusterhandle.AccessAttributes()),
		"fingerprint": tf.OptionalString("Fingerprint of the certificate of the machine in maintenance mode, as its " +
			"console prints it: base64 of the SHA-256 of its public key. The provider refuses any other machine."),
		"maintenance": tf.ComputedBool("Whether the machine is in maintenance mode, without a configuration."),
		"stage":       tf.ComputedString("Talos stage of the machine: `maintenance`, `installing`, `booting`, `running`, …"),
		"ready":       tf.ComputedBool("Whether Talos reports the machine as ready."),
		"talos_version": tf.ComputedString("Running Talos version, such as `" + machineconfig.CurrentTalos +
			"`. Null in maintenance mode before " +
			"Talos 1.13, which does not report it."),
		"platform": tf.ComputedString("Talos platform, such as `metal`."),
		"hostname": tf.ComputedString("Hostname of the machine."),
		"certificate_fingerprint": tf.ComputedString("Fingerprint of the certificate of the machine, in the format of " +
			"`fingerprint`. In maintenance mode it changes with every boot."),
		"uuid":          tf.ComputedString("Hardware UUID (SMBIOS), for `uuid` of a machine."),
		"manufacturer":  tf.ComputedString("Manufacturer of the hardware."),
		"product_name":  tf.ComputedString("Product name of the hardware."),
		"serial_number": tf.ComputedString("Serial number of the hardware."),
		"addresses":     tf.ComputedStrings("IP addresses of the machine, without those of pods and services."),
		"disks":         tf.ComputedObjectList("Disks that Talos can be installed on.", diskAttributes()),
		"schematic": tf.ComputedString("ID of the Image Factory schematic of the running image; null if no factory built " +
			"it."),
		"extensions": tf.ComputedObjectList("System extensions of the running image.", extensionAttributes()),
	}
}

func extensionAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":    tf.ComputedString("Name of the extension."),
		"version": tf.ComputedString("Version of the extension."),
	}
}

func diskAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"path":       tf.ComputedString("Device, such as `/dev/sda`."),
		"size":       tf.ComputedNumber("Size in bytes."),
		"model":      tf.ComputedString("Model."),
		"serial":     tf.ComputedString("Serial number."),
		"wwid":       tf.ComputedString("World-wide id."),
		"uuid":       tf.ComputedString("UUID."),
		"bus_path":   tf.ComputedString("Bus path."),
		"transport":  tf.ComputedString("Transport, such as `nvme`, `sata` or `virtio`."),
		"rotational": tf.ComputedBool("Whether the disk is a spinning disk."),
		"read_only":  tf.ComputedBool("Whether the disk is read-only."),
		"system":     tf.ComputedBool("Whether Talos is installed on the disk."),
		"symlinks":   tf.ComputedStrings("Stable names, such as `/dev/disk/by-id/…`."),
	}
}

var (
	extensionType = tf.ObjectOf(extensionAttributes())
	diskType      = tf.ObjectOf(diskAttributes())
)

// Fill puts the report of a machine into the model.
func (m *Model) Fill(info talos.Info) {
	m.ID = m.Address
	m.Maintenance = types.BoolValue(info.Access == step.Maintenance)
	m.Stage = tf.TextOrNull(string(info.Stage))
	m.Ready = types.BoolValue(info.Ready)
	m.TalosVersion = tf.TextOrNull(info.TalosVersion)
	m.Platform = tf.TextOrNull(info.Platform)
	m.Hostname = tf.TextOrNull(info.Hostname)
	m.Certificate = tf.TextOrNull(info.Fingerprint)
	m.UUID = tf.TextOrNull(info.UUID)
	m.Manufacturer = tf.TextOrNull(info.Manufacturer)
	m.ProductName = tf.TextOrNull(info.ProductName)
	m.SerialNumber = tf.TextOrNull(info.SerialNumber)
	m.Schematic = tf.TextOrNull(info.Schematic)
	m.Addresses = tf.TextList(info.Addresses)

	extensions := make([]attr.Value, len(info.Extensions))
	for i, e := range info.Extensions {
		extensions[i] = types.ObjectValueMust(extensionType.AttrTypes,
			map[string]attr.Value{"name": types.StringValue(e.Name), "version": types.StringValue(e.Version)})
	}

	m.Extensions = types.ListValueMust(extensionType, extensions)

	disks := make([]attr.Value, len(info.Disks))
	for i, d := range info.Disks {
		disks[i] = diskValue(d)
	}

	m.Disks = types.ListValueMust(diskType, disks)
}

func diskValue(d talos.Disk) attr.Value {
	return types.ObjectValueMust(diskType.AttrTypes, map[string]attr.Value{
		"path": types.StringValue(d.Path), "size": types.Int64Value(int64(d.Size)), "model": tf.TextOrNull(d.Model),
		"serial": tf.TextOrNull(d.Serial),
		"wwid":   tf.TextOrNull(d.WWID), "uuid": tf.TextOrNull(d.UUID), "bus_path": tf.TextOrNull(d.BusPath),
		"transport":  tf.TextOrNull(d.Transport),
		"rotational": types.BoolValue(d.Rotational), "read_only": types.BoolValue(d.ReadOnly),
		"system":   types.BoolValue(d.System),
		"symlinks": tf.TextList(d.Symlinks),
	})
}
