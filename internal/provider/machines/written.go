package machines

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// writtenSet is machines of one cluster as a configuration, a plan or a state has them: in plain values, plus
// attributes as written that are only checked or only used in an apply.
type writtenSet struct {
	machineset.Set

	written []*writtenGroup
	// mode, endpoint and host are as in the configuration, without the defaults of talosop.
	mode, endpoint types.String
	host           types.Object
	// snapshot is what etcd starts with, and snapshotGiven whether there is one, as far as that is known.
	snapshot      restore.Snapshot
	snapshotGiven bool
	// allowBootstrap is the consent to bootstrap etcd with secrets that are older than the plan; see consent.go.
	allowBootstrap types.Bool
	// clusterName is that of the cluster.
	clusterName types.String
	// recorded is what state records of secrets outside it, and secretless is true when the provider does not have
	// them either, so that only the configuration may.
	recorded   providerdata.RecordedSecrets
	secretless bool
}

// writtenGroup is a group of machines with its attributes as written.
type writtenGroup struct {
	*machineset.Group

	machines machinesModel
	// planes is settings of control planes alone.
	planes                       settings.PlaneModel
	talosVersion, maxUnavailable types.String
}

// mostReplicas limits a mistyped number. It is more than one host cluster runs.
const mostReplicas = 1000

// writeGroup completes a group with its attributes.
func writeGroup(g machineset.Group, machines machinesModel, talosVersion, maxUnavailable types.String) *writtenGroup {
	talosVersion = tf.Version(talosVersion)
	g.TalosVersion, g.MaxUnavailable = talosVersion.ValueString(), maxUnavailable.ValueString()
	g.Schematic, g.Platform = schematicOf(machines.Schematic.ValueString()), machines.Platform.ValueString()
	g.Extensions = extensionsOf(machines.Schematic.ValueString())
	g.OwnPod, g.SecureBoot = !machines.Pod.IsNull(), machines.SecureBoot.ValueBool()

	return &writtenGroup{Group: &g, machines: machines, talosVersion: talosVersion, maxUnavailable: maxUnavailable}
}

// schematicOf is the ID of a schematic that is given by its ID or its content. Other text stays as it is, and the
// validation refuses it.
func schematicOf(text string) string {
	if text == "" {
		return ""
	}

	id, err := schematic.IDOf(text)
	if err != nil {
		return text
	}

	return id
}

// extensionsOf are the system extensions of a schematic that is given by its content, and otherwise nil.
func extensionsOf(text string) []string {
	parsed, err := schematic.Parse(text)
	if text == "" || err != nil {
		return nil
	}

	return append([]string{}, parsed.Customization.SystemExtensions.OfficialExtensions...)
}

func plainGroups(written []*writtenGroup) []*machineset.Group {
	var groups []*machineset.Group
	for _, g := range written {
		groups = append(groups, g.Group)
	}

	return groups
}

func hasControlPlane(groups []*writtenGroup) bool {
	return machineset.Set{Groups: plainGroups(groups)}.OwnsControlPlane()
}

// MachineSet reads the machines and settings of a model. own is its host cluster, and g what is known of its one
// group besides the model.
func (m machineSetModel) MachineSet(
	ctx context.Context, handle clusterhandle.HandleModel, own types.Object, g machineset.Group,
	maxUnavailable types.String, planes settings.PlaneModel,
) (writtenSet, diag.Diagnostics) {
	g.At, g.VersionAt = finding.Path{}, finding.Root("talos_version")

	written := writeGroup(g, m.machinesModel, m.TalosVersion, maxUnavailable)
	written.planes = planes

	p, diags := machineSetOf(ctx, handle, own, written)
	m.Put(ctx, &p.Set)

	return p, diags
}

// machineSetOf reads groups of machines in one cluster. own is the host cluster of their resource.
func machineSetOf(
	ctx context.Context, handle clusterhandle.HandleModel, own types.Object, groups ...*writtenGroup,
) (writtenSet, diag.Diagnostics) {
	settings, named, located, endpoints := &tf.Reader{}, &tf.Reader{}, &tf.Reader{}, &tf.Reader{}

	var replicas []types.Int64
	for _, g := range groups {
		replicas = append(replicas, g.machines.Replicas)
	}

	p := writtenSet{written: groups, clusterName: handle.Name, mode: handle.Mode, endpoint: handle.Endpoint, host: own}
	p.Set = machineset.Set{
		Groups:    plainGroups(groups),
		Settings:  handle.Settings(settings),
		Secrets:   handle.Secrets.ValueString(),
		Provided:  handle.Secrets.IsNull(),
		Endpoints: endpoints.Texts(handle.TalosEndpoints),

		EndpointOf: (&tf.Reader{}).TextMap(handle.TalosEndpointOf),
		Machines:   map[string]machineset.Machine{},
		Host:       clusterhandle.HostOf(named, settings, handle.AccessModel, own, hasControlPlane(groups), replicas...),
	}
	p.Settings.Container, p.Settings.FindsLinks = p.Host != nil, true

	if p.Host != nil {
		named.Text(handle.Name) // machines are named after it
	}

	for _, g := range groups {
		named.Text(g.talosVersion)
		settings.Text(g.maxUnavailable)

		if p.Host != nil {
			addReplicas(ctx, &p.Set, named, settings, g, own)

			continue
		}

		g.addMachines(ctx, &p.Set, named, located, settings)
		g.addUnknown(&p.Set)
	}

	p.Unknown.Note(machineset.UnknownMode, handle.Mode.IsUnknown())
	p.Unknown.Note(machineset.UnknownMachines, named.Unknown)
	p.Unknown.Note(machineset.UnknownAddresses, located.Unknown)
	p.Unknown.Note(machineset.UnknownConfiguration, settings.Unknown)
	p.Unknown.Note(machineset.UnknownSecrets, handle.Secrets.IsUnknown())
	p.Unknown.Note(machineset.UnknownEndpoints, endpoints.Unknown)

	return p, append(settings.Diags, named.Diags...)
}

// addMachines adds the machines of a group. named, located and settings read which machines there are, where they
// answer, and the rest.
func (g *writtenGroup) addMachines(ctx context.Context, p *machineset.Set, named, located, settings *tf.Reader) {
	for key, machine := range tf.Objects[machineModel](ctx, named, g.machines.Machines) {
		_, ownImage := g.installOf(named, machine)
		reset, graceful := g.resetOf(ctx, machine)
		address, dialed := machineset.Reached(located.Text(machine.Address), located.Text(machine.TalosEndpoint))

		p.Machines[g.Prefix+key] = machineset.Machine{
			Wanted: cluster.Wanted{
				Address:     address,
				Endpoint:    dialed,
				WaitsAt:     located.Text(machine.WaitsAt),
				Through:     located.Text(machine.Access) == machineset.AccessThroughControlPlane,
				UUID:        settings.Text(machine.UUID),
				Fingerprint: settings.Text(machine.Fingerprint),
				Rejoin:      settings.Truth(machine.Rejoin, false),
				Locked:      settings.Truth(machine.Locked, false),
				Reset:       reset,
			},
			Group:       g.Group,
			Key:         key,
			AnyHardware: machine.UUID.IsUnknown(),
			OwnHostname: !machine.Hostname.IsNull(),
			OwnInstall:  !machine.Install.IsNull(),
			OwnVolumes:  !machine.SystemVolumes.IsNull(),
			OwnReset:    !machine.Reset.IsNull(),
			Graceful:    graceful,
			OwnImage:    ownImage,
			Meta:        readMeta(named, settings, machine.Meta),
			Config:      g.machine(settings, key, machine),
		}
	}
}

// addUnknown adds the machines of a group that are unknown as a whole: only their names are known, and machines in
// state with these names do not leave.
func (g *writtenGroup) addUnknown(p *machineset.Set) {
	for key, element := range g.machines.Machines.Elements() {
		if element.IsUnknown() {
			p.Machines[g.Prefix+key] = machineset.Machine{Group: g.Group, Key: key, AnyHardware: true, OwnHostname: true,
				Config: g.machine(&tf.Reader{}, key, machineModel{})}
		}
	}
}

// machine reads the settings of one machine, with those of its group filled in. Its key is the default of its host
// name; the validation reports a key that cannot be one.
func (g *writtenGroup) machine(r *tf.Reader, key string, one machineModel) machineconfig.Machine {
	install, _ := g.installOf(r, one)

	hostname := r.Text(one.Hostname)
	if name := g.HostName(key); one.Hostname.IsNull() && network.IsDNSName(name) {
		hostname = name
	}

	volumes := one.SystemVolumes
	if volumes.IsNull() {
		volumes = g.machines.SystemVolumes
	}

	return machineconfig.Machine{
		Role:         machineconfig.Role(g.Role),
		Mode:         machineconfig.Metal,
		Hostname:     hostname,
		CertSANs:     machineset.NamesOf(r.Text(one.TalosEndpoint)),
		Install:      install,
		System:       g.machines.Read(r, volumes),
		TalosVersion: g.TalosVersion,
		PoolSettings: settings.Read(r, g.machines.NodeModel, g.planes),
		Settings:     settings.Read(r, one.MachineModel),
		PoolPatches:  r.Texts(g.machines.ConfigPatches),
		Patches:      r.Texts(one.ConfigPatches),
	}
}

// installOf merges the install settings of a machine over those of its group. A disk and a disk selector are
// alternatives, so the machine's choice of one replaces the set's choice of the other. ownImage reports that the
// installer image was given.
func (g *writtenGroup) installOf(r *tf.Reader, one machineModel) (install machineconfig.Install, ownImage bool) {
	merged, own := g.machines.Install.Attributes(), one.Install.Attributes()
	r.Unknown = r.Unknown || g.machines.Install.IsUnknown() || one.Install.IsUnknown()

	if len(own) > 0 && (!own["disk"].IsNull() || !own["disk_selector"].IsNull()) {
		delete(merged, "disk")
		delete(merged, "disk_selector")
	}

	for name, value := range own {
		if !value.IsNull() {
			merged[name] = value
		}
	}

	r.IntoFields(merged, &install)

	given, _ := merged["image"].(types.String)
	install.Image = g.installer(r, given)

	return install, !given.IsNull()
}

// installer names the installer image. Its parts are checked where the values are, so an image that cannot be named
// yet is left empty here.
func (g *writtenGroup) installer(r *tf.Reader, given types.String) string {
	if !given.IsNull() {
		return r.Text(given)
	}

	reference, err := image.Installer{
		Version: r.Text(g.talosVersion), Schematic: schematicOf(r.Text(g.machines.Schematic)),
		Platform:   r.Text(g.machines.Platform),
		SecureBoot: r.Truth(g.machines.SecureBoot, false),
	}.Reference()
	if err != nil {
		return ""
	}

	return reference
}

// count is how many machines in containers a group has; known is false while that is unknown.
func (g *writtenGroup) count() (count int, known bool) {
	return int(min(max(g.machines.Replicas.ValueInt64(), 0), mostReplicas)), !g.machines.Replicas.IsUnknown()
}

// addReplicas adds the machines in containers of a group. named decides which there are, and where they answer.
func addReplicas(
	ctx context.Context, p *machineset.Set, named, r *tf.Reader, g *writtenGroup, host types.Object,
) {
	count, known := g.count()
	named.Unknown = named.Unknown || !known || g.HostPool() == ""
	r.Unknown = r.Unknown || g.machines.ReplicaPatches.IsUnknown()

	image := p.Host.Image
	if version := g.TalosVersion; image != "" && version != "" {
		image += ":" + version
	}

	all, _ := host.Attributes()["pod"].(types.Object)
	pod := clusterhandle.PodOf(ctx, r, g.machines.Pod, all)

	if g.HostPool() == "" {
		return // a pool of workers whose name is not known yet
	}

	for n := range count {
		identity := workload.Machine{Pool: g.HostPool(), Ordinal: n}

		address := p.Host.AddressOf(p.Settings.Name, identity)

		p.Machines[g.Replica(n)] = machineset.Machine{
			Group: g.Group, Key: strconv.Itoa(n), Ordinal: n, Wanted: cluster.Wanted{Address: address}, Image: image, Pod: pod,
			Config: machineconfig.Machine{
				Role: machineconfig.Role(g.Role), Mode: machineconfig.Container, Hostname: p.Host.NameOf(p.Settings.Name, identity),
				CertSANs: finding.NonEmpty(address),
				System:   g.machines.Read(r, noSystemVolumes()), TalosVersion: g.TalosVersion,
				PoolSettings: settings.Read(r, g.machines.NodeModel, g.planes),
				PoolPatches:  r.Texts(g.machines.ConfigPatches), Patches: g.patchesOf(r, n),
			},
		}
	}
}

// patchesOf is the patches of one machine in a container.
func (g *writtenGroup) patchesOf(r *tf.Reader, n int) []string {
	patches, ok := g.machines.ReplicaPatches.Elements()[strconv.Itoa(n)].(types.List)
	if !ok {
		return nil
	}

	return r.Texts(patches)
}

// resetOf are the reset options of a machine: its own, or those of its group. An unknown value does not affect a plan,
// because machines leave with the options of the state.
func (g *writtenGroup) resetOf(ctx context.Context, one machineModel) (how wipe.Reset, graceful bool) {
	from, r := one.Reset, &tf.Reader{}
	if from.IsNull() {
		from = g.machines.Reset
	}

	options, ok := tf.Object[resetModel](ctx, r, from)
	if !ok {
		return wipe.Reset{}, false
	}

	how = wipe.Reset{Selection: wipe.Select(r.Texts(options.Wipe), r.Texts(options.UserDisks)),
		Abrupt: !r.Truth(options.Graceful, true), Off: !r.Truth(options.Reboot, true)}

	return how, options.Graceful.ValueBool()
}
