package machines

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/endpoint"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// DefaultPoolName is the name of a pool of workers without a configured one.
const DefaultPoolName = "worker"

// controlPlaneFrom is the model of a control plane as its machines describe it.
func controlPlaneFrom(
	ctx context.Context, file clusterimport.SecretsFile, found map[string]clusterimport.Recognized,
) (ControlPlaneModel, diag.Diagnostics) {
	of, machines, err := clusterimport.SettingsOfAll(found, file)
	if err != nil {
		return ControlPlaneModel{}, clusterimport.ImportFailed("read the configurations", err, "")
	}

	pool, diags := poolFrom(ctx, machineset.Group{}, machines, found, true)
	handle := clusterimport.HandleOf(of)

	model := ControlPlaneModel{
		machineSetModel: pool,
		settingsModel:   settingsFrom(handle, file, of),
	}
	model.ID = handle.Name
	settings.Write(commonSettings(machines), &model.PlaneModel)

	return model, diags
}

// settingsFrom is the settings of a cluster from its handle.
func settingsFrom(
	handle clusterhandle.HandleModel, file clusterimport.SecretsFile, of machineconfig.Cluster,
) settingsModel {
	model := settingsModel{
		ClusterModel: handle.ClusterModel,
		Mode:         handle.Mode, Name: handle.Name, Endpoint: handle.Endpoint, Secrets: file.Stored(),
		KubernetesVersion: handle.KubernetesVersion, VersionContract: handle.VersionContract,
		ClusterPatches: handle.ConfigPatches,
		Cluster:        types.ObjectNull(clusterhandle.HandleType()), Manifests: types.StringNull(),
		RestoreFrom: types.ObjectNull(restore.Type()), RestoredFrom: types.StringNull(), RestoredAt: types.StringNull(),
		Host: types.ObjectNull(clusterhandle.HostType()), ObservedOthers: unmanaged.None(),
		UpgradeUnmanaged: unmanaged.NoUpgrade(),
	}
	settings.WriteCluster(of, &model.OwnModel)

	return model
}

// workersFrom is the model of a pool of workers as its machines describe it, in the cluster that its control planes
// describe.
func workersFrom(
	ctx context.Context, request clusterimport.Request, file clusterimport.SecretsFile, planes,
	found map[string]clusterimport.Recognized,
) (WorkerModel, diag.Diagnostics) {
	settings, _, err := clusterimport.SettingsOfAll(planes, file)
	if err != nil {
		return WorkerModel{}, clusterimport.ImportFailed("read the configurations of the control planes", err, "")
	}

	_, machines, err := clusterimport.SettingsOfAll(found, file)
	if err != nil {
		return WorkerModel{}, clusterimport.ImportFailed("read the configurations", err, "")
	}

	pool, diags := poolFrom(ctx, machineset.Group{}, machines, found, false)
	object, more := clusterimport.HandleSeen(ctx, settings, file, planes)
	diags.Append(more...)

	model := WorkerModel{
		machineSetModel: pool, Name: types.StringValue(cmp.Or(request.Name, DefaultPoolName)), Cluster: object,
		Host: types.ObjectNull(clusterhandle.WorkerHostType()),
	}
	model.ID = types.StringValue(settings.Name + "/" + model.Name.ValueString())

	return model, diags
}

// poolFrom describes machines. Settings that are equal on all of them belong to the pool.
func poolFrom(
	ctx context.Context, of machineset.Group, machines map[string]machineconfig.Machine,
	found map[string]clusterimport.Recognized, protect bool,
) (machineSetModel, diag.Diagnostics) {
	names := slices.Sorted(maps.Keys(found))
	first := machines[names[0]].Install
	version := found[names[0]].State.TalosVersion

	shared := true
	for _, name := range names {
		shared = shared && reflect.DeepEqual(machines[name].Install, first)
	}

	model := machineSetModel{
		TalosVersion: tf.TextOrNull(version),
		machinesModel: unsetReplicas(
			machinesModel{groupModel: groupModel{Schematic: types.StringNull(),
				Platform: types.StringValue(clusterhandle.MetalMode), ConfigPatches: tf.TextList(nil)},
				Reset: types.ObjectNull(resetType())}),
		CommonModel: unsetCommon(ctx, protect),
	}

	model.SystemModel, model.SystemVolumes = sharedSystem(machines, names)

	common := commonSettings(machines)
	settings.Write(common, &model.NodeModel)

	if reference, err := image.ParseReference(first.Image); err == nil {
		if installer, ok := reference.Installer(); ok && installer.Schematic != "" && installer.Registry == "" {
			model.Schematic, model.Platform = types.StringValue(installer.Schematic), types.StringValue(installer.Platform)
			model.SecureBoot = tf.TrueOrNull(installer.SecureBoot)
		}
	}

	r := &tf.Reader{}
	derived := writeGroup(machineset.Group{}, model.machinesModel, model.TalosVersion, types.StringNull()).installer(r,
		types.StringNull())

	model.Install = types.ObjectNull(installType())
	if shared {
		model.Install = installValue(first, derived)
	}

	var diags diag.Diagnostics

	model.Machines, diags = importedMachines(ctx, of, found, withoutSettings(common, machines),
		func(install machineconfig.Install) types.Object {
			if shared {
				return types.ObjectNull(installType())
			}

			return installValue(install, derived)
		}, model.SystemVolumes.IsNull())

	model.remember(withoutHostname(of, machines))

	return model, diags
}

// withoutHostname is a record of machines without a host name in their configuration, and of nothing else.
func withoutHostname(of machineset.Group, machines map[string]machineconfig.Machine) record.Machines {
	seen := record.Machines{}

	for name, m := range machines {
		if m.Hostname == "" {
			seen[of.Prefix+name] = record.Machine{HostnameUnset: true}
		}
	}

	return seen
}

// importedMachines is the machines of a set, each with the install settings and volumes that own assigns to it.
func importedMachines(
	ctx context.Context, of machineset.Group, found map[string]clusterimport.Recognized,
	machines map[string]machineconfig.Machine,
	own func(machineconfig.Install) types.Object, ownVolumes bool,
) (types.Map, diag.Diagnostics) {
	values := map[string]attr.Value{}

	var diags diag.Diagnostics

	for _, name := range slices.Sorted(maps.Keys(found)) {
		hostname := tf.TextOrNull(machines[name].Hostname)
		if hostname.ValueString() == of.HostName(name) {
			hostname = types.StringNull()
		}

		volumes := noSystemVolumes()
		if ownVolumes {
			_, volumes = systemModelOf(machines[name].System)
		}

		one := machineModel{
			Address: types.StringValue(found[name].Address), Access: endpoint.Imported(found[name].Through), Hostname: hostname,
			Install: own(machines[name].Install), SystemVolumes: volumes,
			ConfigPatches: types.ListNull(types.StringType), Meta: types.MapNull(types.StringType),
			Reset: types.ObjectNull(resetType()),
		}
		settings.Write(machines[name].Settings, &one.MachineModel)

		value, more := types.ObjectValueFrom(ctx, machineType(), one)
		diags.Append(more...)

		values[name] = value
	}

	return types.MapValueMust(types.ObjectType{AttrTypes: machineType()}, values), diags
}

// unsetCommon is CommonModel without configured values.
func unsetCommon(ctx context.Context, protect bool) CommonModel {
	return CommonModel{
		lifecycleModel: lifecycleModel{
			Changes:   rollout.Unset(),
			OnDestroy: types.StringValue(onDestroyReset), OnIncomplete: types.StringValue(tf.OnIncompleteWarn),
			DeletionProtection: types.BoolValue(protect), Phase: types.StringNull(), Operations: tf.TextList(nil),
			Impact: ImpactOf(machineset.Impact{}), Timeouts: tf.NoTimeouts(ctx),
		},
		observations: noObservations(),
	}
}

// installValue describes the installation of a machine. It leaves out an image that follows from version, schematic
// and platform.
func installValue(i machineconfig.Install, derived string) types.Object {
	if i.Image == derived {
		i.Image = ""
	}

	if i.DiskSelector != nil {
		i.Disk = ""
	}

	return tf.ValueOf[types.Object](machineType()["install"], i)
}

func machineType() map[string]attr.Type {
	return tf.ObjectOf(machinesAttribute("", "").NestedObject.Attributes).AttrTypes
}

func installType() map[string]attr.Type { return tf.AttributesOf(machineType()["install"]) }
