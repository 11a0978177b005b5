// Package settings is the table of settings that a cluster, a pool and a machine may each have, and of those of
// whole clusters. Schema, decoding, encoding, handle, import and reference page derive from it.
//
// A setting is a row here, with a field of a model, and one file in internal/machineconfig/setting, which locates it
// in a configuration. One of a whole cluster is a row and a field of machineconfig.Cluster, which decisions read.
package settings

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ClusterModel is the settings of a whole cluster that its handle has.
type ClusterModel struct {
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

// OwnModel is the settings of a whole cluster that its handle does not have.
type OwnModel struct {
	ScheduleOnPlane types.Bool `tfsdk:"allow_scheduling_on_control_planes"`
}

// NodeModel is the settings that every level has.
type NodeModel struct {
	Labels           types.Map `tfsdk:"labels"`
	Annotations      types.Map `tfsdk:"annotations"`
	Taints           types.Map `tfsdk:"taints"`
	Sysctls          types.Map `tfsdk:"sysctls"`
	KubeletExtraArgs types.Map `tfsdk:"kubelet_extra_args"`
}

// VIPModel is the additional settings of levels below the whole control plane.
type VIPModel struct {
	VIP types.Object `tfsdk:"vip"`
}

// PlaneModel is the additional settings of the whole control plane besides NodeModel.
type PlaneModel struct {
	VIPModel

	OIDC types.Object `tfsdk:"oidc"`
}

// MachineModel is the settings of one machine.
type MachineModel struct {
	NodeModel
	VIPModel
}

// row is one setting.
type row struct {
	setting *setting.Setting
	// name is a field of machineconfig.Cluster, when there is no setting.
	name string
	kind kind
	// what is the description: meaning, format and default.
	what string
	// cost ends the description: what a change does to running machines.
	cost string
	// secret values are not shown.
	secret bool
	// on are the levels that have it.
	on []Level
}

// clusters are the levels of a whole cluster, and resources those with machines among them.
var (
	clusters  = []Level{Cluster, Handle, ControlPlane}
	resources = []Level{Cluster, ControlPlane}
)

var table = []row{
	{
		setting: setting.Labels, kind: blankTexts, cost: tf.AppliedLive, on: everywhere,
		what: "Labels of the Kubernetes nodes. On workers, Kubernetes refuses most labels below " +
			"`node-role.kubernetes.io`, `kubernetes.io` and `k8s.io`; the plan warns about them.",
	},
	{
		setting: setting.Annotations, kind: blankTexts, cost: tf.AppliedLive, on: everywhere,
		what: "Annotations of the Kubernetes nodes.",
	},
	{
		setting: setting.Taints, kind: texts, cost: tf.AppliedLive, on: everywhere,
		what: "Taints of the Kubernetes nodes by key, each `<effect>` or `<value>:<effect>`, such as `gpu:NoSchedule`. " +
			"On workers they need Talos v1.14, which sets them when the node registers.",
	},
	{
		setting: setting.Sysctls, kind: texts, cost: tf.AppliedLive, on: everywhere,
		what: "Kernel parameters (sysctl) by name, such as `vm.max_map_count`.",
	},
	{
		setting: setting.KubeletExtraArgs, kind: texts, on: everywhere,
		cost: " A change restarts the kubelet; pods keep running.",
		what: "Arguments of the kubelet by name without dashes, such as `feature-gates`. Arguments that Talos sets are " +
			"refused.",
	},
	{
		setting: setting.OIDC, kind: object(oidc), cost: " A change restarts the API servers, without a reboot.",
		on: clusters,
		what: "OpenID Connect issuer whose tokens the API server accepts. Up to contract v1.13 it is written as " +
			"arguments (`oidc-issuer-url`), from v1.14 as structured authentication.",
	},
	{
		setting: setting.VIP, kind: object(vip), cost: tf.AppliedLive, on: []Level{Cluster, Handle, ControlPlane,
			ControlPlaneBlock, Machine, OneMachine},
		what: "Virtual IP that the control planes share in one layer 2 network, for `endpoint`.",
	}, {
		name: "cert_sans", kind: filledList, cost: tf.AppliedLive, on: clusters,
		what: "Additional IP addresses and names in the certificates of the Kubernetes API and the Talos API. The " +
			"certificates always contain the host of `endpoint` and the addresses of the machines.",
	},
	{
		name: "pod_cidrs", kind: list, cost: tf.ReplacesCluster, on: clusters,
		what: "Networks of the pods: one, or an IPv4 and an IPv6 network for dual stack. Default: `10.244.0.0/16`, and `" +
			machineconfig.ContainerPodCIDR + "` in containers.",
	},
	{
		name: "service_cidrs", kind: list, cost: tf.ReplacesCluster, on: clusters,
		what: "Networks of the services: one, or an IPv4 and an IPv6 network for dual stack. Default: `10.96.0.0/12`, " +
			"and `" + machineconfig.ContainerServiceCIDR + "` in containers.",
	},
	{
		name: "dns_domain", kind: text, cost: tf.ReplacesCluster, on: clusters,
		what: "DNS domain of the cluster. Default: `cluster.local`.",
	},
	{
		name: "cni", kind: brieflyInHandle(cni), cost: tf.AppliedLive, on: clusters,
		what: "The network plugin (CNI) that Talos installs at bootstrap. Default: Flannel.",
	},
	{
		name: "kube_proxy", kind: truth, cost: tf.AppliedLive, on: clusters,
		what: "Whether Talos deploys kube-proxy (default `true`). Set it to `false` for network plugins that replace it.",
	},
	{
		name: "discovery", kind: truth, cost: tf.AppliedLive, on: clusters,
		what: "Whether machines find each other through the public discovery service, which sees only encrypted data and " +
			"which KubeSpan needs. Default: `true`, or `false` with `air_gapped` or `isolated`.",
	},
	{
		name: "isolated", kind: truth, on: clusters,
		cost: " A change is refused: destroy the cluster and create another one.",
		what: "Whether this is a restore rehearsal, isolated from the running cluster with the same secrets (default " +
			"`false`). It uses no discovery and a separate `endpoint`, and its pods reach only each other " +
			"([guide](../guides/etcd-backups.md#rehearse-a-restore)).",
	},
	{
		name: "air_gapped", kind: truth, cost: tf.AppliedLive, on: clusters,
		what: "Whether the machines reach no public network (default `false`), which disables the discovery service, and " +
			"time synchronization unless a patch configures it. Images must come from `registries` or the image cache.",
	},
	{
		name: "image_cache", kind: truth, cost: " Enabled later, it does not affect installed machines.", on: clusters,
		what: "Whether machines use the image cache of their boot medium, stored in a volume on the system disk (default " +
			"`false`).",
	},
	{
		name: "registries", kind: brieflyInHandle(registries), cost: tf.AppliedLive, on: clusters,
		what: "Container registries of all machines of the cluster: mirrors, credentials and trust.",
	},
	{
		name: "allow_scheduling_on_control_planes", kind: truth, cost: tf.AppliedLive, on: resources,
		what: "Whether ordinary pods may run on control-plane machines (default `false`).",
	},
}
