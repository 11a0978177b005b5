package provider

import (
	"cmp"
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// controlPlaneFrom is the model of a control plane as its machines describe it.
func controlPlaneFrom(
	ctx context.Context, request importRequest, file secretsFile, found map[string]recognised,
) (controlPlaneModel, diag.Diagnostics) {
	settings, machines, err := settingsOfAll(found, file)
	if err != nil {
		return controlPlaneModel{}, importFailed("read the configurations", err, "")
	}

	pool, diags := poolFrom(ctx, request.Machines, machines, found, true)
	handle, more := handleOf(ctx, settings)
	diags.Append(more...)

	model := controlPlaneModel{
		poolModel:     pool,
		settingsModel: settingsFrom(handle, file, settings),
	}
	model.ID = handle.Name

	return model, diags
}

// settingsFrom is the settings of a cluster as its handle has them.
func settingsFrom(handle handleModel, file secretsFile, settings machineconfig.Cluster) settingsModel {
	return settingsModel{
		Mode: handle.Mode, Name: handle.Name, Endpoint: handle.Endpoint, Secrets: types.StringValue(file.text),
		KubernetesVersion: handle.KubernetesVersion, VersionContract: handle.VersionContract, CertSANs: handle.CertSANs,
		PodCIDRs: handle.PodCIDRs, ServiceCIDRs: handle.ServiceCIDRs, DNSDomain: handle.DNSDomain, CNI: handle.CNI, KubeProxy: handle.KubeProxy,
		Discovery: handle.Discovery, AirGapped: handle.AirGapped, ImageCache: handle.ImageCache, Registries: handle.Registries,
		ClusterPatches: handle.ConfigPatches, ScheduleOnPlane: trueOrNull(settings.ScheduleOnControlPlanes),
		Cluster: types.ObjectNull(handleType()), Manifests: types.StringNull(),
		Bootstrap: types.ObjectNull(bootstrapType()), RestoredFrom: types.StringNull(), RestoredAt: types.StringNull(),
		Host: types.ObjectNull(hostType()),
	}
}

// workersFrom is the model of a pool of workers as its machines describe it; what
// the cluster is, its control planes tell.
func workersFrom(
	ctx context.Context, request importRequest, file secretsFile, planes, found map[string]recognised,
) (workerModel, diag.Diagnostics) {
	settings, _, err := settingsOfAll(planes, file)
	if err != nil {
		return workerModel{}, importFailed("read the configurations of the control planes", err, "")
	}

	_, machines, err := settingsOfAll(found, file)
	if err != nil {
		return workerModel{}, importFailed("read the configurations", err, "")
	}

	pool, diags := poolFrom(ctx, request.Machines, machines, found, false)
	object, more := handleSeen(ctx, settings, file, planes)
	diags.Append(more...)

	model := workerModel{
		poolModel: pool, Name: types.StringValue(cmp.Or(request.Name, defaultPoolName)), Cluster: object, Host: types.ObjectNull(workerHostType()),
	}
	model.ID = types.StringValue(settings.Name + "/" + model.Name.ValueString())

	return model, diags
}

// handleSeen is the handle of a cluster as the resource that made its control planes
// exports it.
func handleSeen(
	ctx context.Context, settings machineconfig.Cluster, file secretsFile, planes map[string]recognised,
) (types.Object, diag.Diagnostics) {
	handle, diags := handleOf(ctx, settings)

	names := sortedNames(planes)
	handle.Secrets = types.StringValue(file.text)
	handle.Phase = types.StringValue(string(cluster.Ready))
	handle.TalosVersion = textOrNull(planes[names[0]].state.TalosVersion)

	var endpoints []string
	for _, name := range names {
		endpoints = append(endpoints, planes[name].address)
	}

	handle.TalosEndpoints = textList(endpoints)

	object, more := types.ObjectValueFrom(ctx, handleType(), handle)

	return object, append(diags, more...)
}

// handleOf describes a cluster, leaving out what is Talos's default.
func handleOf(ctx context.Context, c machineconfig.Cluster) (handleModel, diag.Diagnostics) {
	nested := handleType()
	h := unknownHandle()

	h.Name, h.Mode, h.Endpoint = types.StringValue(c.Name), types.StringValue(metalMode), types.StringValue(c.Endpoint)
	h.TalosEndpoints, h.Secrets, h.Phase, h.TalosVersion = textList(nil), types.StringNull(), types.StringNull(), types.StringNull()
	h.KubernetesVersion, h.VersionContract = textOrNull(c.KubernetesVersion), textOrNull(c.Contract)
	h.CertSANs, h.ConfigPatches = textList(c.CertSANs), textList(nil)
	h.PodCIDRs, h.ServiceCIDRs = listOrNull(c.PodCIDRs), listOrNull(c.ServiceCIDRs)
	h.DNSDomain = textOrNull(c.DNSDomain)
	h.KubeProxy, h.Discovery = falseOrNull(!c.KubeProxyDisabled), types.BoolPointerValue(c.Discovery)
	h.AirGapped, h.ImageCache = trueOrNull(c.AirGapped), trueOrNull(c.ImageCache)
	h.Registries = types.ObjectNull(attributesOf(nested["registries"]))
	h.CNI = types.ObjectNull(attributesOf(nested["cni"]))
	h.Host = types.ObjectNull(attributesOf(nested["host"]))

	if c.CNI.Name == "" || reflect.DeepEqual(c.CNI, machineconfig.CNI{Name: machineconfig.CNIFlannel}) {
		return h, nil
	}

	cni := cniModel{Name: types.StringValue(c.CNI.Name), URLs: listOrNull(c.CNI.URLs)}
	flannelType := attributesOf(attributesOf(nested["cni"])["flannel"])
	cni.Flannel = types.ObjectNull(flannelType)

	var diags diag.Diagnostics

	if f := c.CNI.Flannel; f != nil {
		flannel, more := types.ObjectValueFrom(ctx, flannelType,
			flannelModel{ExtraArgs: listOrNull(f.ExtraArgs), KubeNetworkPolicies: trueOrNull(f.KubeNetworkPolicies)})
		diags.Append(more...)

		cni.Flannel = flannel
	}

	object, more := types.ObjectValueFrom(ctx, attributesOf(nested["cni"]), cni)
	diags.Append(more...)

	h.CNI = object

	return h, diags
}

// poolFrom describes machines. Install settings that are the same on all of them
// are those of the pool.
func poolFrom(
	ctx context.Context, addresses map[string]string, machines map[string]machineconfig.Machine, found map[string]recognised, protect bool,
) (poolModel, diag.Diagnostics) {
	names := sortedNames(addresses)
	first := machines[names[0]].Install
	version := found[names[0]].state.TalosVersion

	shared := true
	for _, name := range names {
		shared = shared && reflect.DeepEqual(machines[name].Install, first)
	}

	model := poolModel{
		TalosVersion:  textOrNull(version),
		machinesModel: untoldReplicas(machinesModel{Schematic: types.StringNull(), Platform: types.StringValue(metalMode), ConfigPatches: textList(nil)}),
		lifeModel:     untoldLife(ctx, protect),
	}

	if reference, err := image.ParseReference(first.Image); err == nil {
		if installer, ok := reference.Installer(); ok && installer.Schematic != "" && installer.Registry == "" && !installer.SecureBoot {
			model.Schematic, model.Platform = types.StringValue(installer.Schematic), types.StringValue(installer.Platform)
		}
	}

	r := &reader{}
	derived := (&group{machinesModel: model.machinesModel, talosVersion: model.TalosVersion}).installer(r, types.StringNull())

	var diags diag.Diagnostics

	model.Install = types.ObjectNull(installType())
	if shared {
		model.Install, diags = installValue(ctx, first, derived)
	}

	values := map[string]attr.Value{}

	for _, name := range names {
		machine := machineModel{
			Address: types.StringValue(addresses[name]), Hostname: textOrNull(machines[name].Hostname), Install: types.ObjectNull(installType()),
			ConfigPatches: types.ListNull(types.StringType), Meta: types.MapNull(types.StringType),
		}

		if !shared {
			install, more := installValue(ctx, machines[name].Install, derived)
			diags.Append(more...)

			machine.Install = install
		}

		value, more := types.ObjectValueFrom(ctx, machineType(), machine)
		diags.Append(more...)

		values[name] = value
	}

	model.Machines = types.MapValueMust(types.ObjectType{AttrTypes: machineType()}, values)

	return model, diags
}

// untoldLife is what a resource says of its life when the user says nothing.
func untoldLife(ctx context.Context, protect bool) lifeModel {
	return lifeModel{
		changeModel: untoldChange(),
		OnDestroy:   types.StringValue(onDestroyReset), OnIncomplete: types.StringValue(onIncompleteWarn),
		DeletionProtection: types.BoolValue(protect), Phase: types.StringNull(), Operations: textList(nil),
		Observed: types.MapNull(observedType()), Timeouts: noTimeouts(ctx),
	}
}

// installValue describes the installation of a machine. The image is left out when
// it is the one that follows from version, schematic and platform.
func installValue(ctx context.Context, i machineconfig.Install, derived string) (types.Object, diag.Diagnostics) {
	if i.Image == derived {
		i.Image = ""
	}

	if reflect.DeepEqual(i, machineconfig.Install{}) {
		return types.ObjectNull(installType()), nil
	}

	model := installModel{
		Disk: textOrNull(i.Disk), DiskSelector: types.ObjectNull(selectorType()), Wipe: trueOrNull(i.Wipe), Image: textOrNull(i.Image),
		ExtraKernelArgs: listOrNull(i.ExtraKernelArgs),
	}

	var diags diag.Diagnostics

	if s := i.DiskSelector; s != nil {
		model.Disk = types.StringNull()
		model.DiskSelector, diags = types.ObjectValueFrom(ctx, selectorType(), diskSelectorModel{
			Size: textOrNull(s.Size), Model: textOrNull(s.Model), Serial: textOrNull(s.Serial), Modalias: textOrNull(s.Modalias),
			UUID: textOrNull(s.UUID), WWID: textOrNull(s.WWID), Type: textOrNull(s.Type), BusPath: textOrNull(s.BusPath),
		})
	}

	value, more := types.ObjectValueFrom(ctx, installType(), model)

	return value, append(diags, more...)
}

func machineType() map[string]attr.Type {
	return objectOf(machinesAttribute("").NestedObject.Attributes).AttrTypes
}

func installType() map[string]attr.Type { return attributesOf(machineType()["install"]) }

func selectorType() map[string]attr.Type { return attributesOf(installType()["disk_selector"]) }

// noTimeouts is the value of timeouts when nothing is said about them.
func noTimeouts(ctx context.Context) timeouts.Value {
	return timeouts.Value{Object: types.ObjectNull(timeoutsType(ctx))}
}

func timeoutsType(ctx context.Context) map[string]attr.Type {
	if t, ok := machineTimeouts(ctx).GetType().(timeouts.Type); ok {
		return t.AttrTypes
	}

	return nil
}

func listOrNull(texts []string) types.List {
	if len(texts) == 0 {
		return types.ListNull(types.StringType)
	}

	return textList(texts)
}

func trueOrNull(b bool) types.Bool {
	if !b {
		return types.BoolNull()
	}

	return types.BoolValue(true)
}

func falseOrNull(b bool) types.Bool {
	if b {
		return types.BoolNull()
	}

	return types.BoolValue(false)
}
