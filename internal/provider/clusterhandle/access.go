package clusterhandle

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// AccessModel is the part of a handle that says where a cluster is and how it is reached. Resources that only
// observe a cluster or work in it take only this part. CLIs drop what an object has beyond its type, so a user can
// pass a whole handle. What such a resource does not use is neither in its state nor a change of it.
type AccessModel struct {
	Name              types.String `tfsdk:"name"`
	Mode              types.String `tfsdk:"mode"`
	Endpoint          types.String `tfsdk:"endpoint"`
	TalosEndpoints    types.List   `tfsdk:"talos_endpoints"`
	TalosEndpointOf   types.Map    `tfsdk:"talos_endpoint_of"`
	Secrets           types.String `tfsdk:"secrets"`
	TalosVersion      types.String `tfsdk:"talos_version"`
	KubernetesVersion types.String `tfsdk:"kubernetes_version"`
	VersionContract   types.String `tfsdk:"version_contract"`
	Phase             types.String `tfsdk:"phase"`
	Host              types.Object `tfsdk:"host"`
}

// accessAttributes describe access as a user sets it, without the host cluster.
func accessAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": tf.RequiredString("Name of the cluster."),
		"mode": tf.OptionalString("Platform of the machines: `metal`, the default, or `container`, pods of the "+
			"Kubernetes cluster of `host`.", Mode),
		"endpoint": tf.RequiredString("URL of the Kubernetes API, such as `https://10.0.0.10:6443`."),
		"talos_endpoints": tf.OptionalStrings("Addresses of the Talos APIs of the control planes, with the port if it is " +
			"not 50000."),
		"talos_endpoint_of": tf.OptionalStringMap("The `talos_endpoint` of control planes that have one, by `address`."),
		"secrets": tf.OptionalSensitive("Secrets bundle of the cluster: YAML from `talosctl gen secrets`, or `bundle` of " +
			"`talosop_secrets`. Default: the secrets in `clusters` of the provider, by `name`."),
		"talos_version": tf.OptionalString("Talos version of the control plane, such as `" +
			machineconfig.CurrentTalos + "`."),
		"kubernetes_version": tf.OptionalString("Kubernetes version of the cluster, such as `" +
			machineconfig.CurrentKubernetes + "`."),
		"version_contract": tf.OptionalString("Version contract of the machine configurations, such as `v1.14`."),
		"phase": tf.OptionalString("Phase of the control plane. It is unknown while the cluster is created, so that no " +
			"client connects too early. Not needed in a handle that you write."),
	}
}

// AccessAttributes describe the part of a handle for what only observes a cluster, or works in it: no change affects
// machines.
func AccessAttributes() map[string]schema.Attribute {
	attributes := accessAttributes()
	attributes["host"] = hostOfHandle(hostPlace())

	return withoutMachines(attributes, "")
}

// BoundAccess describes access for what cannot follow to another cluster, and does nothing to machines. cost is the
// effect of another cluster.
func BoundAccess(cost string) map[string]schema.Attribute {
	attributes := AccessAttributes()

	replace(attributes, "name", ReplaceOnOtherName())
	describe(attributes, "name", Renamed(cost))

	return attributes
}

// AccessType is the type of access.
func AccessType() map[string]attr.Type { return tf.ObjectOf(AccessAttributes()).AttrTypes }

// AccessFrom decodes access. For an unknown or null value it returns a model without known values.
func AccessFrom(ctx context.Context, value types.Object) (AccessModel, diag.Diagnostics) {
	if value.IsUnknown() || value.IsNull() {
		return UnknownAccess(), nil
	}

	var access AccessModel

	diags := value.As(ctx, &access, basetypes.ObjectAsOptions{})
	access.TalosVersion, access.KubernetesVersion = tf.Version(access.TalosVersion), tf.Version(access.KubernetesVersion)

	return access, diags
}

// UnknownAccess has no known value in it.
func UnknownAccess() AccessModel {
	return AccessModel{
		Name: types.StringUnknown(), Mode: types.StringUnknown(), Endpoint: types.StringUnknown(),
		TalosEndpoints:  types.ListUnknown(types.StringType),
		TalosEndpointOf: types.MapUnknown(types.StringType),
		Secrets:         types.StringUnknown(), TalosVersion: types.StringUnknown(), KubernetesVersion: types.StringUnknown(),
		VersionContract: types.StringUnknown(), Phase: types.StringUnknown(),
		Host: types.ObjectUnknown(tf.ObjectOf(hostPlace()).AttrTypes),
	}
}

// Object is access as resources store it.
func (a AccessModel) Object(ctx context.Context) (types.Object, diag.Diagnostics) {
	kinds := AccessType()
	a.Host = partOf(a.Host, tf.AttributesOf(kinds["host"]))

	return types.ObjectValueFrom(ctx, kinds, a)
}
