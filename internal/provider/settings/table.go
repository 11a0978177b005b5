// Package settings is the table of settings that a cluster, a pool and a machine may each have. Schema, decoding,
// encoding, handle, import and reference page derive from it.
//
// A setting is a row here, with a field of a model, and one file in internal/machineconfig/setting, which says where it
// is in a configuration.
package settings

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// NodeModel is the settings that every level has.
type NodeModel struct {
	Labels           types.Map `tfsdk:"labels"`
	Annotations      types.Map `tfsdk:"annotations"`
	Taints           types.Map `tfsdk:"taints"`
	Sysctls          types.Map `tfsdk:"sysctls"`
	KubeletExtraArgs types.Map `tfsdk:"kubelet_extra_args"`
}

// VIPModel is the settings that levels below the whole control plane have beside them.
type VIPModel struct {
	VIP types.Object `tfsdk:"vip"`
}

// PlaneModel is the settings that the whole control plane has beside NodeModel.
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
	kind    kind
	// what describes it: what it is, its form and its default.
	what string
	// cost ends the description: what a change does to machines that run.
	cost string
	// secret values are not shown.
	secret bool
	// on are the levels that have it.
	on []Level
}

var table = []row{
	{
		setting: setting.Labels, kind: texts{blank: true}, cost: tf.AppliedLive, on: everywhere,
		what: "Labels of the Kubernetes nodes. Kubernetes lets a worker set none below `node-role.kubernetes.io`, " +
			"`kubernetes.io` and `k8s.io` but a few, which is a warning.",
	},
	{
		setting: setting.Annotations, kind: texts{blank: true}, cost: tf.AppliedLive, on: everywhere,
		what: "Annotations of the Kubernetes nodes.",
	},
	{
		setting: setting.Taints, kind: texts{}, cost: tf.AppliedLive, on: everywhere,
		what: "Taints of the Kubernetes nodes by their keys, each `<effect>` or `<value>:<effect>`, such as " +
			"`gpu:NoSchedule`. Workers need Talos v1.14 for them, which gives them when the node registers.",
	},
	{
		setting: setting.Sysctls, kind: texts{}, cost: tf.AppliedLive, on: everywhere,
		what: "Kernel parameters (sysctl) by their names, such as `vm.max_map_count`.",
	},
	{
		setting: setting.KubeletExtraArgs, kind: texts{}, on: everywhere,
		cost: " A change restarts the kubelet; pods go on running.",
		what: "Arguments of the kubelet by their names without dashes, such as `feature-gates`. Those that Talos sets itself " +
			"are refused.",
	},
	{
		setting: setting.OIDC, kind: oidc, cost: " A change restarts the API servers, without a reboot.",
		on: []Level{Cluster, Handle, ControlPlane},
		what: "OpenID Connect issuer whose tokens the API server takes. Up to contract v1.13 it is written as arguments " +
			"(`oidc-issuer-url`), from v1.14 on as structured authentication.",
	},
	{
		setting: setting.VIP, kind: vip, cost: tf.AppliedLive, on: []Level{Cluster, Handle, ControlPlane,
			ControlPlaneBlock, Machine, OneMachine},
		what: "Virtual IP that the control planes share in one layer 2 network, for `endpoint`.",
	},
}
