package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

type controlPlaneModel struct {
	poolModel

	Mode              types.String `tfsdk:"mode"`
	Name              types.String `tfsdk:"name"`
	Endpoint          types.String `tfsdk:"endpoint"`
	Secrets           types.String `tfsdk:"secrets"`
	KubernetesVersion types.String `tfsdk:"kubernetes_version"`
	VersionContract   types.String `tfsdk:"version_contract"`
	CertSANs          types.List   `tfsdk:"cert_sans"`
	PodCIDRs          types.List   `tfsdk:"pod_cidrs"`
	ServiceCIDRs      types.List   `tfsdk:"service_cidrs"`
	DNSDomain         types.String `tfsdk:"dns_domain"`
	CNI               types.Object `tfsdk:"cni"`
	KubeProxy         types.Bool   `tfsdk:"kube_proxy"`
	Discovery         types.Bool   `tfsdk:"discovery"`
	AirGapped         types.Bool   `tfsdk:"air_gapped"`
	ImageCache        types.Bool   `tfsdk:"image_cache"`
	Registries        types.Object `tfsdk:"registries"`
	ClusterPatches    types.List   `tfsdk:"cluster_config_patches"`
	ScheduleOnPlane   types.Bool   `tfsdk:"allow_scheduling_on_control_planes"`
	Cluster           types.Object `tfsdk:"cluster"`
}

// handle describes the cluster for other resources, as far as the plan knows it.
// The phase is left to the caller.
func (m controlPlaneModel) handle(ctx context.Context) handleModel {
	return handleModel{
		Name: m.Name, Mode: m.Mode, Endpoint: m.Endpoint, TalosEndpoints: m.talosEndpoints(ctx), Secrets: m.Secrets,
		TalosVersion: m.TalosVersion, KubernetesVersion: m.KubernetesVersion, VersionContract: m.VersionContract, Phase: m.Phase,
		CertSANs: m.CertSANs, PodCIDRs: m.PodCIDRs, ServiceCIDRs: m.ServiceCIDRs, DNSDomain: m.DNSDomain, CNI: m.CNI,
		KubeProxy: m.KubeProxy, Discovery: m.Discovery, AirGapped: m.AirGapped, ImageCache: m.ImageCache, Registries: m.Registries,
		ConfigPatches: m.ClusterPatches,
	}
}

// talosEndpoints lists the addresses of the machines in the order of their names.
func (m controlPlaneModel) talosEndpoints(ctx context.Context) types.List {
	r := &reader{}
	machines := objects[machineModel](ctx, r, m.Machines)

	if r.unknown || len(machines) != len(m.Machines.Elements()) {
		return types.ListUnknown(types.StringType)
	}

	var addresses []attr.Value
	for _, name := range sortedNames(machines) {
		addresses = append(addresses, machines[name].Address)
	}

	return types.ListValueMust(types.StringType, addresses)
}

// pool reads the model as machines of one role in one cluster.
func (m controlPlaneModel) pool(ctx context.Context) (pool, diag.Diagnostics) {
	p, diags := m.poolModel.pool(ctx, m.handle(ctx), cluster.ControlPlane)

	r := &reader{}
	p.settings.ScheduleOnControlPlanes = r.truth(m.ScheduleOnPlane, false)
	p.unknown = p.unknown || r.unknown
	p.object = "control plane"

	return p, diags
}

// contractOf is the version contract that a cluster made with this Talos version
// gets: its minor version.
func contractOf(version types.String) types.String {
	if version.IsUnknown() {
		return types.StringUnknown()
	}

	parsed, err := machineconfig.ParseTalosVersion(version.ValueString())
	if err != nil {
		// The version is reported where it is; nothing follows from it.
		return types.StringUnknown()
	}

	return types.StringValue(parsed.Contract())
}

// recordedPhase is the phase in state; empty when there is none.
func (m poolModel) recordedPhase() cluster.Phase { return cluster.Phase(m.Phase.ValueString()) }

// bootstrapped reports whether the recorded phase implies that the cluster had an
// etcd: it is only Provisioning or Bootstrapping before that.
func bootstrapped(phase cluster.Phase) bool {
	return slices.Contains([]cluster.Phase{cluster.Joining, cluster.Ready, cluster.Degraded}, phase)
}

// describe names machines in a sentence.
func describe(names []string) string {
	switch len(names) {
	case 0:
		return "no machine"
	case 1:
		return names[0]
	default:
		return fmt.Sprintf("%s and %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	}
}
