package clusterhandle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// HandleModel is the cluster handle: what a resource exports of a cluster, and everything that another one needs to
// work with it. It is an ordinary object, so a user can describe clusters made by other tools by hand.
type HandleModel struct {
	AccessModel

	settings.ClusterModel
	settings.NodeModel
	settings.PlaneModel

	ConfigPatches types.List `tfsdk:"config_patches"`
}

// HandleAttributes describe the handle as a user sets it.
func HandleAttributes() map[string]schema.Attribute {
	attributes := settings.Attributes(settings.Handle)
	maps.Copy(attributes, accessAttributes())

	attributes["config_patches"] = schema.ListAttribute{
		Validators:  []validator.List{tf.MayBeBlank{}},
		Optional:    true,
		ElementType: types.StringType,
		Sensitive:   true, // a provider does not learn which values are: those of the resource may be
		MarkdownDescription: "Patches of the configuration of every machine of the cluster, applied before those of " +
			"pools and machines.",
	}

	attributes["host"] = HandleHost()

	for _, name := range []string{"kubernetes_version", "version_contract"} {
		describe(attributes, name, " Needed to render the configuration of machines.")
	}

	return attributes
}

// ObservedHandle describes the handle for what uses all of it and has no machines: no change of the cluster replaces
// that.
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

// JoinHandle describes the handle for what has machines in a cluster of another resource. They cannot follow to
// another cluster: cost is what happens to its machines then.
func JoinHandle(cost string) map[string]schema.Attribute {
	attributes := HandleAttributes()

	replace(attributes, "name", ReplaceOnOtherName())
	describe(attributes, "name", Renamed(cost))
	replace(attributes, "mode", tf.ReplaceOnChangeFrom(MetalMode))
	describe(attributes, "mode", cost)
	describe(attributes, "kubernetes_version", " A new version upgrades the machines of the resource; kubelets follow "+
		"after the API servers of the cluster.")

	if host, ok := attributes["host"].(schema.SingleNestedAttribute); ok {
		replace(host.Attributes, "namespace", tf.ReplaceOnChange())
		replace(host.Attributes, "dns_domain", replaceOnOtherDomain(DefaultHostDomain))
	}

	return tf.WithDescriptions(attributes, strings.NewReplacer(tf.ReplacesCluster, cost).Replace)
}

// replace makes a change of a text replace the resource.
func replace(attributes map[string]schema.Attribute, name string, on planmodifier.String) {
	text, _ := attributes[name].(schema.StringAttribute)
	text.PlanModifiers = []planmodifier.String{on}
	attributes[name] = text
}

// describe appends to the description of a text.
func describe(attributes map[string]schema.Attribute, name, more string) {
	text, _ := attributes[name].(schema.StringAttribute)
	text.MarkdownDescription += more
	attributes[name] = text
}

// withoutMachines removes from the texts what a change does to machines: only the resource that owns them acts on
// them. replaces is the text about what would replace a cluster.
func withoutMachines(attributes map[string]schema.Attribute, replaces string) map[string]schema.Attribute {
	return tf.WithDescriptions(attributes, strings.NewReplacer(tf.AppliedLive, "", tf.ReplacesCluster, replaces, rollsPods,
		"", hostInPlace, "").Replace)
}

// TellingHandle describes the handle of a resource that has all of it in other attributes, nearly all with the same
// names.
func TellingHandle() map[string]schema.Attribute {
	attributes := tf.Briefly(ObservedHandle())

	for name, attribute := range attributes {
		if !slices.Contains([]string{"config_patches", "phase", "talos_endpoints", "talos_endpoint_of"}, name) {
			maps.Copy(attributes, tf.AsIn(name, map[string]schema.Attribute{name: attribute}))
		}
	}

	return attributes
}

// HandleType is the type of a handle, the same everywhere. It is computed once, because every plan uses it.
var HandleType = sync.OnceValue(func() map[string]attr.Type {
	return tf.ObjectOf(HandleAttributes()).AttrTypes
})

// HandleFrom decodes a handle. For an unknown or null value it returns a model without known values.
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
	access := UnknownAccess()
	access.Host = types.ObjectUnknown(tf.AttributesOf(HandleType()["host"]))

	unknown := HandleModel{AccessModel: access, ConfigPatches: types.ListUnknown(types.StringType)}
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
			diags.Append(tf.Diagnostic(invalidTalosEndpoint.At(
				finding.Root("cluster").AtName("talos_endpoints").AtListIndex(i),
				finding.Args{"value": address, "hint": err.Error()})))

			continue
		}

		if !slices.Contains(endpoints, host) {
			endpoints = append(endpoints, host)
		}
	}

	return endpoints
}
