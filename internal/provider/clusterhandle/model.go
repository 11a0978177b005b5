package clusterhandle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// HandleModel is the cluster handle: what a resource exports of a cluster, and all
// that another one needs to work with it. It is an ordinary object, so clusters
// made by other tools can be described by hand.
type HandleModel struct {
	AccessModel

	SettingsModel
	settings.NodeModel
	settings.PlaneModel

	ConfigPatches types.List `tfsdk:"config_patches"`
}

// SettingsModel is the settings of a whole cluster, as [ClusterAttributes] describes them.
type SettingsModel struct {
	CertSANs     types.List   `tfsdk:"cert_sans"`
	PodCIDRs     types.List   `tfsdk:"pod_cidrs"`
	ServiceCIDRs types.List   `tfsdk:"service_cidrs"`
	DNSDomain    types.String `tfsdk:"dns_domain"`
	CNI          types.Object `tfsdk:"cni"`
	KubeProxy    types.Bool   `tfsdk:"kube_proxy"`
	Discovery    types.Bool   `tfsdk:"discovery"`
	Isolated     types.Bool   `tfsdk:"isolated"`
	AirGapped    types.Bool   `tfsdk:"air_gapped"`
	ImageCache   types.Bool   `tfsdk:"image_cache"`
	Registries   types.Object `tfsdk:"registries"`
}

// CertSANsDescription describes cert_sans.
const CertSANsDescription = "Additional IP addresses and names in the certificates of the Kubernetes API and the " +
	"Talos API. The host of `endpoint` and the addresses of the machines are always in them." + tf.AppliedLive

// ClusterAttributes are the settings of a whole cluster, as they are on the
// resource that makes the control plane and in the handle.
func ClusterAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cert_sans": schema.ListAttribute{
			Optional:            true,
			ElementType:         types.StringType,
			MarkdownDescription: CertSANsDescription,
		},
		"pod_cidrs": schema.ListAttribute{
			Optional:    true,
			ElementType: types.StringType,
			MarkdownDescription: "Networks of the pods: one, or an IPv4 and an IPv6 one for dual stack. Default: " +
				"`10.244.0.0/16`, and " +
				"`" + machineconfig.ContainerPodCIDR + "` in containers." +
				ReplacesCluster,
		},
		"service_cidrs": schema.ListAttribute{
			Optional:    true,
			ElementType: types.StringType,
			MarkdownDescription: "Networks of the services: one, or an IPv4 and an IPv6 one for dual stack. Default: " +
				"`10.96.0.0/12`, and `" + machineconfig.ContainerServiceCIDR +
				"` in containers." +
				ReplacesCluster,
		},
		"dns_domain": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "DNS domain of the cluster. Default: `cluster.local`." + ReplacesCluster,
		},
		"cni": cniAttribute(),
		"kube_proxy": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether Talos deploys kube-proxy (default `true`). Set it to `false` for network plugins " +
				"that replace it." + tf.AppliedLive,
		},
		"discovery": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether machines find each other through the public discovery service, which sees " +
				"encrypted data only and which KubeSpan needs. Default: `true`, `false` with `air_gapped` or `isolated`." +
				tf.AppliedLive,
		},
		"isolated": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether this is a restore rehearsal, kept apart from the cluster that runs with the same " +
				"secrets (default `false`): no discovery, an `endpoint` of its own, pods that reach only each other " +
				"([guide](../guides/etcd-backups.md#rehearse-a-restore)). A change is refused: destroy the cluster and create " +
				"another one.",
		},
		"air_gapped": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether the machines reach no public network (default `false`): switches the " +
				"discovery service off, and time synchronisation too unless a patch configures it. Images have to come from " +
				"`registries` or the image cache." + tf.AppliedLive,
		},
		"image_cache": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether machines use the image cache of their boot medium, kept in a volume on the " +
				"system disk (default `false`). Switched on later it has no effect on installed machines.",
		},
		"registries": registriesAttribute(),
	}
}

// HandleAttributes describe the handle where a user gives it.
func HandleAttributes() map[string]schema.Attribute {
	attributes := tf.Retold(ClusterAttributes(), handleText)
	maps.Copy(attributes, settings.Attributes(settings.Handle))
	maps.Copy(attributes, accessAttributes())

	attributes["config_patches"] = schema.ListAttribute{
		Validators:  []validator.List{tf.MayBeBlank{}},
		Optional:    true,
		ElementType: types.StringType,
		Sensitive:   true, // a provider is not told which values are: those of the resource may be
		MarkdownDescription: "Patches of the configuration of every machine of the cluster, before those of pools and " +
			"machines.",
	}

	attributes["host"] = HandleHost()

	for _, name := range []string{"kubernetes_version", "version_contract"} {
		describe(attributes, name, " Needed where the configuration of machines is rendered.")
	}

	return attributes
}

// ObservedHandle describes the handle of what makes use of all of it and has no machines: no change of the cluster
// replaces that.
func ObservedHandle() map[string]schema.Attribute {
	attributes := HandleAttributes()

	for name, attribute := range attributes {
		if text, ok := attribute.(schema.StringAttribute); ok {
			text.PlanModifiers = nil
			attributes[name] = text
		}
	}

	return withoutMachines(attributes, "")
}

// JoinHandle describes the handle of what has machines in a cluster that others make. They cannot follow to another
// cluster: cost is what its machines go through then.
func JoinHandle(cost string) map[string]schema.Attribute {
	attributes := HandleAttributes()

	replace(attributes, "name", ReplaceOnOtherName())
	describe(attributes, "name", Renamed(cost))
	replace(attributes, "mode", tf.ReplaceOnChangeFrom(MetalMode))
	describe(attributes, "mode", cost)
	describe(attributes, "kubernetes_version", " Another one upgrades the machines of the resource, their kubelets once "+
		"the API servers of the cluster have it.")

	if host, ok := attributes["host"].(schema.SingleNestedAttribute); ok {
		replace(host.Attributes, "namespace", tf.ReplaceOnChange())
		replace(host.Attributes, "dns_domain", replaceOnOtherDomain(DefaultHostDomain))
	}

	return tf.Retold(attributes, strings.NewReplacer(ReplacesCluster, cost).Replace)
}

// replace lets a change of a text replace the resource.
func replace(attributes map[string]schema.Attribute, name string, on planmodifier.String) {
	text, _ := attributes[name].(schema.StringAttribute)
	text.PlanModifiers = []planmodifier.String{on}
	attributes[name] = text
}

// describe adds to what is said of a text.
func describe(attributes map[string]schema.Attribute, name, more string) {
	text, _ := attributes[name].(schema.StringAttribute)
	text.MarkdownDescription += more
	attributes[name] = text
}

// withoutMachines takes out of the texts what a change does to machines: that is done by the resource
// that has them. replaces is the text about what would replace a cluster.
func withoutMachines(attributes map[string]schema.Attribute, replaces string) map[string]schema.Attribute {
	return tf.Retold(attributes, strings.NewReplacer(tf.AppliedLive, "", ReplacesCluster, replaces, rollsPods, "",
		hostInPlace, "").Replace)
}

// handleText is the text of a setting of a cluster in the handle: what it is, and what a change does.
func handleText(description string) string {
	for _, change := range []string{tf.AppliedLive, ReplacesCluster} {
		if text, ok := strings.CutSuffix(description, change); ok {
			return tf.FirstSentence(text) + change
		}
	}

	return tf.FirstSentence(description)
}

// TellingHandle describes the handle of a resource that has all of it in attributes of its own, nearly all under the
// same names.
func TellingHandle() map[string]schema.Attribute {
	attributes := tf.Briefly(ObservedHandle())

	for name, attribute := range attributes {
		if !slices.Contains([]string{"config_patches", "phase", "talos_endpoints", "talos_endpoint_of"}, name) {
			maps.Copy(attributes, tf.AsIn(name, map[string]schema.Attribute{name: attribute}))
		}
	}

	return attributes
}

// HandleType is the type of a handle, the same wherever it appears. It is made once: every plan asks for it.
var HandleType = sync.OnceValue(func() map[string]attr.Type {
	return tf.ObjectOf(HandleAttributes()).AttrTypes
})

// HandleFrom decodes a handle. An unknown or null one gives a model with nothing
// known in it.
func HandleFrom(ctx context.Context, value types.Object) (HandleModel, diag.Diagnostics) {
	var handle HandleModel

	if value.IsUnknown() || value.IsNull() {
		return UnknownHandle(), nil
	}

	diags := value.As(ctx, &handle, basetypes.ObjectAsOptions{})
	handle.TalosVersion, handle.KubernetesVersion = tf.Version(handle.TalosVersion), tf.Version(handle.KubernetesVersion)

	return handle, diags
}

// Object is the handle as resources export and store it.
func (h HandleModel) Object(ctx context.Context) (types.Object, diag.Diagnostics) {
	return types.ObjectValueFrom(ctx, HandleType(), h)
}

// UnknownHandle has no known value in it.
func UnknownHandle() HandleModel {
	nested := HandleType()
	text := types.ListUnknown(types.StringType)

	access := UnknownAccess()
	access.Host = types.ObjectUnknown(tf.AttributesOf(nested["host"]))

	unknown := HandleModel{
		AccessModel: access,
		SettingsModel: SettingsModel{
			CertSANs: text, PodCIDRs: text, ServiceCIDRs: text, DNSDomain: types.StringUnknown(),
			CNI: types.ObjectUnknown(tf.AttributesOf(nested["cni"])), KubeProxy: types.BoolUnknown(),
			Discovery: types.BoolUnknown(), Isolated: types.BoolUnknown(),
			AirGapped: types.BoolUnknown(), ImageCache: types.BoolUnknown(),
			Registries: types.ObjectUnknown(tf.AttributesOf(nested["registries"])),
		},
		ConfigPatches: text,
	}
	settings.Unknown(&unknown)

	return unknown
}

// EndpointsOf are the control planes of a handle, each once.
func EndpointsOf(handle AccessModel, diags *diag.Diagnostics) []string {
	var endpoints []string

	given, _ := tf.KnownStrings(handle.TalosEndpoints)

	for i, address := range given {
		host, err := machineset.CanonicalEndpoint(address)
		if err != nil {
			diags.Append(tf.Invalid(path.Root("cluster").AtName("talos_endpoints").AtListIndex(i), "address",
				"found "+finding.Quote(address),
				"allowed is an IP address or a host name, with or without a port, without a scheme", err.Error()))

			continue
		}

		if !slices.Contains(endpoints, host) {
			endpoints = append(endpoints, host)
		}
	}

	return endpoints
}
