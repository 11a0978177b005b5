package machines

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/endpoint"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
)

// settingsModel is the cluster-wide settings of a resource that creates a cluster.
type settingsModel struct {
	settings.ClusterModel
	settings.OwnModel

	Mode              types.String `tfsdk:"mode"`
	Name              types.String `tfsdk:"name"`
	Endpoint          types.String `tfsdk:"endpoint"`
	Secrets           types.String `tfsdk:"secrets"`
	KubernetesVersion types.String `tfsdk:"kubernetes_version"`
	VersionContract   types.String `tfsdk:"version_contract"`
	ClusterPatches    types.List   `tfsdk:"cluster_config_patches"`
	Cluster           types.Object `tfsdk:"cluster"`
	Manifests         types.String `tfsdk:"bootstrap_manifests_version"`
	RestoreFrom       types.Object `tfsdk:"restore_from"`
	RestoredFrom      types.String `tfsdk:"restored_from"`
	RestoredAt        types.String `tfsdk:"restored_at"`
	Host              types.Object `tfsdk:"host"`
	ObservedOthers    types.Map    `tfsdk:"observed_others"`
	UpgradeUnmanaged  types.Object `tfsdk:"upgrade_unmanaged"`
	AllowBootstrap    types.Bool   `tfsdk:"allow_bootstrap"`
}

// handleAs is the handle of the cluster, with the values that the settings do not contain.
func (m settingsModel) handleAs(talosVersion, phase types.String, at endpoint.Lists) clusterhandle.HandleModel {
	return clusterhandle.HandleModel{
		AccessModel: clusterhandle.AccessModel{
			Name: m.Name, Mode: m.Mode, Endpoint: m.Endpoint, TalosEndpoints: at.Endpoints, TalosEndpointOf: at.Of,
			Secrets: m.Secrets, TalosVersion: tf.Version(talosVersion), KubernetesVersion: tf.Version(m.KubernetesVersion),
			VersionContract: m.VersionContract, Phase: phase, Host: clusterhandle.HostForHandle(m.Host),
		},
		ClusterModel: m.ClusterModel, NodeModel: settings.None[settings.NodeModel](),
		PlaneModel: settings.None[settings.PlaneModel](), ConfigPatches: m.ClusterPatches,
	}
}

// exportAs fills the cluster handle. patches are those of the control planes alone.
func (m *settingsModel) exportAs(
	ctx context.Context, handle clusterhandle.HandleModel, patches types.List,
) diag.Diagnostics {
	handle, diags := withPodNetwork(handle, patches)
	object, more := handle.Object(ctx)
	m.Cluster = object

	return append(diags, more...)
}

// pinContract decides the version contract when the configuration, given, leaves it to talosop: that of state, or
// without a state the one of the Talos version.
func (m *settingsModel) pinContract(given settingsModel, state *settingsModel, talosVersion types.String) {
	switch {
	case !given.VersionContract.IsNull():
	case state != nil:
		m.VersionContract = state.VersionContract
	default:
		m.VersionContract = contractOf(talosVersion)
	}
}

// lastWithoutDocuments is the last contract whose configurations have one main document for nearly everything.
// Contracts are compared as texts: all supported minor versions have two digits.
const lastWithoutDocuments = "v1.13"

func (m *settingsModel) leavesContract() bool { return m.VersionContract.IsNull() }

func (m *settingsModel) assumeContract(contract string) {
	m.VersionContract = types.StringValue(contract)
}

// withSettings is CommonModel with the parts in the settings, and setFrom stores it.
func (m settingsModel) withSettings(common CommonModel) CommonModel {
	common.manifests, common.restored = m.Manifests, restored{From: m.RestoredFrom, At: m.RestoredAt}
	common.others = m.ObservedOthers

	return common
}

func (m *settingsModel) setFrom(common CommonModel) {
	m.Manifests, m.RestoredFrom, m.RestoredAt = common.manifests, common.restored.From, common.restored.At
	m.ObservedOthers = common.others
}

// putOwn puts the settings of the cluster that no handle has into a set.
func (m settingsModel) putOwn(ctx context.Context, p *machineset.Set) {
	unmanaged.PutUpgrade(ctx, m.UpgradeUnmanaged, p)

	r := &tf.Reader{}
	settings.ReadCluster(r, &p.Settings, m.OwnModel)
	p.Unknown.Note(machineset.UnknownConfiguration, r.Unknown)
}

// pinEndpoint fills in the endpoint when the configuration, given, leaves it to talosop: the name of the Service in
// front of control planes in containers. On metal there is none.
func (m *settingsModel) pinEndpoint(given settingsModel) {
	if !given.Endpoint.IsNull() {
		return
	}

	r := &tf.Reader{}
	h := clusterhandle.HostOf(r, &tf.Reader{},
		clusterhandle.AccessModel{Mode: m.Mode, Host: types.ObjectNull(clusterhandle.HandleHostType())}, m.Host, false)

	switch {
	case m.Mode.IsUnknown() || h != nil && (r.Unknown || m.Name.IsUnknown()):
		m.Endpoint = types.StringUnknown()
	case h == nil || h.Namespace == "":
		m.Endpoint = types.StringNull()
	default:
		at := workload.Spec{Cluster: m.Name.ValueString(), Namespace: h.Namespace, Domain: h.Domain}
		m.Endpoint = types.StringValue("https://" + at.EndpointHost() + ":6443")
	}
}

// talosEndpoints lists the addresses of control planes by name, of those in containers by number.
func (m settingsModel) talosEndpoints(ctx context.Context, planes machinesModel) endpoint.Lists {
	g := writeGroup(machineset.Group{Role: step.ControlPlane}, planes, types.StringNull(), types.StringNull())
	if !clusterhandle.InContainers(m.Mode, planes.Replicas) {
		r, places := &tf.Reader{}, map[string]endpoint.Place{}
		for name, m := range tf.Objects[machineModel](ctx, r, planes.Machines) {
			places[name] = m.place()
		}

		if r.Unknown || len(places) != len(planes.Machines.Elements()) {
			return endpoint.UnknownLists()
		}

		return endpoint.ListsOf(places)
	}

	handle := clusterhandle.UnknownAccess()
	handle.Name, handle.Mode, handle.Host = m.Name, m.Mode, types.ObjectNull(clusterhandle.HandleHostType())

	named := &tf.Reader{}
	p := machineset.Set{Machines: map[string]machineset.Machine{},
		Settings: machineconfig.Cluster{Name: named.Text(m.Name)}}
	p.Host = clusterhandle.HostOf(named, &tf.Reader{}, handle, m.Host, true, planes.Replicas)
	addReplicas(ctx, &p, named, &tf.Reader{}, g, m.Host)

	if named.Unknown {
		return endpoint.UnknownLists()
	}

	count, _ := g.count()

	addresses := make([]attr.Value, count)
	for n := range count {
		addresses[n] = types.StringValue(p.Machines[g.Replica(n)].Address)
	}

	return endpoint.Lists{Endpoints: types.ListValueMust(types.StringType, addresses), Of: types.MapNull(types.StringType)}
}

// contractOf is the version contract of a cluster that is created with this Talos version: its minor version.
func contractOf(version types.String) types.String {
	if version.IsUnknown() {
		return types.StringUnknown()
	}

	parsed, err := machineconfig.ParseTalosVersion(version.ValueString())
	if err != nil {
		// The version is reported at its attribute; nothing follows from it.
		return types.StringUnknown()
	}

	return types.StringValue(parsed.Contract())
}

// settingsAttributes are the attributes of resources that create clusters.
func settingsAttributes() map[string]schema.Attribute {
	attributes := restore.RecordAttributes()

	maps.Copy(attributes, map[string]schema.Attribute{
		"mode": schema.StringAttribute{
			Required:      true,
			Validators:    []validator.String{clusterhandle.Mode},
			PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			MarkdownDescription: "Platform of the machines: `metal` for physical and virtual machines, or `container` for " +
				"pods of the Kubernetes cluster of `host`." + tf.ReplacesCluster,
		},
		"name": schema.StringAttribute{
			Required:      true,
			PlanModifiers: []planmodifier.String{clusterhandle.ReplaceOnOtherName()},
			MarkdownDescription: "Name of the cluster and of the folder of its snapshots, a DNS label: lower-case letters, " +
				"digits and dashes." + clusterhandle.Renamed(tf.ReplacesCluster),
		},
		"host": clusterhandle.HostAttribute(),
		"endpoint": schema.StringAttribute{
			Optional: true,
			Computed: true,
			MarkdownDescription: "URL of the Kubernetes API for machines and clients, such as `https://10.0.0.10:6443`: a " +
				"load balancer, virtual IP, DNS name, or single control plane. Required on metal; default in containers: the " +
				"Service, `https://<name>.<namespace>.svc.<dns_domain>:6443`." + tf.AppliedLive,
		},
		"secrets": tf.OptionalSensitive("Secrets of the cluster: `bundle` of `talosop_secrets`, or YAML of `talosctl gen " +
			"secrets`. Default: the secrets in `clusters` of the provider, which state does not store. Other secrets are " +
			"refused while the cluster exists."),
		"kubernetes_version": schema.StringAttribute{
			Required:      true,
			PlanModifiers: []planmodifier.String{tf.KeepVersion()},
			MarkdownDescription: "Kubernetes version of the cluster, such as `" + machineconfig.CurrentKubernetes +
				"`, with or without the `v`; " +
				"`talos_version` must support it. " + rollout.KubernetesUpgrade,
		},
		"bootstrap_manifests_version": rollout.ManifestsAttribute(),
		"restore_from":                restore.Attribute(),
		"allow_bootstrap":             allowBootstrapAttribute(),
		"observed_others":             unmanaged.Attribute(),
		"upgrade_unmanaged":           unmanaged.UpgradeAttribute(),
		"version_contract": schema.StringAttribute{
			Optional: true,
			Computed: true,
			MarkdownDescription: "Version of the configuration format, such as `v1.14`. Create pins it to the minor version " +
				"of `talos_version`, and upgrades do not change it. Set it to adopt an older cluster, or to move one to a newer " +
				"format.",
		},
		"cluster_config_patches": schema.ListAttribute{
			Validators:  []validator.List{tf.MayBeBlank{}},
			Optional:    true,
			Computed:    true,
			Default:     tf.NoTexts(),
			ElementType: types.StringType,
			MarkdownDescription: "Patches of the configuration of every machine of the cluster, workers included, applied " +
				"before `config_patches`. " + PatchFormat + patchChange,
		},
		"cluster": schema.SingleNestedAttribute{
			Computed: true,
			MarkdownDescription: "The cluster handle, for `cluster` of other resources, ephemeral resources and data " +
				"sources.",
			Attributes: tf.ComputedAttributes(clusterhandle.TellingHandle()),
		},
	})

	return attributes
}
