package machines

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/healthchecks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/hooks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                   = (*controlPlaneResource)(nil)
	_ resource.ResourceWithConfigure      = (*controlPlaneResource)(nil)
	_ resource.ResourceWithValidateConfig = (*controlPlaneResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*controlPlaneResource)(nil)
	_ resource.ResourceWithImportState    = (*controlPlaneResource)(nil)
	_ resource.ResourceWithIdentity       = (*controlPlaneResource)(nil)
	_ resource.ResourceWithUpgradeState   = (*controlPlaneResource)(nil)
)

// NewControlPlaneResource is the constructor of the resource talosop_control_plane.
func NewControlPlaneResource() resource.Resource {
	return &controlPlaneResource{machinesResource[ControlPlaneModel, *ControlPlaneModel]{
		kind: "talosop_control_plane", imports: clusterimport.OfControlPlane}}
}

// controlPlaneResource creates the control plane of a cluster. It bootstraps etcd.
type controlPlaneResource struct {
	machinesResource[ControlPlaneModel, *ControlPlaneModel]
}

func (r *controlPlaneResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := poolAttributes(ctx, "control-plane", true)
	attributes["health_checks"] = healthchecks.AttributeAsIn("worker", rollout.PositiveDuration)
	attributes["hooks"] = hooks.AttributeAsIn("worker", rollout.PositiveDuration)
	maps.Copy(attributes, settingsAttributes())
	maps.Copy(attributes, settings.Attributes(settings.ControlPlane))

	resp.Schema = schema.Schema{
		Version: schemaVersion,
		MarkdownDescription: "The control plane of a cluster, from machines in maintenance mode to a Kubernetes API that " +
			"answers. It configures the machines, bootstraps etcd once, and waits for healthy members and registered nodes, " +
			"Ready unless `cni` is `none`.\n\nAfter an unfinished create, stored with its `phase` and a warning, the next " +
			"apply continues; a postcondition on `phase` makes the run fail.",
		Attributes: tf.WithTypes(attributes),
	}
}

func (r *controlPlaneResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	r.importState(ctx, req, resp, r.readOff)
}

// readOff reads a control plane from its machines.
func (r *controlPlaneResource) readOff(
	ctx context.Context, request clusterimport.Request, file clusterimport.SecretsFile,
) (ControlPlaneModel, map[string]clusterimport.Recognized, diag.Diagnostics) {
	found, diags := clusterimport.Recognize(ctx, r.ProviderData, request.Machines, file, step.ControlPlane)
	if diags.HasError() {
		return ControlPlaneModel{}, nil, diags
	}

	model, diags := controlPlaneFrom(ctx, file, found)

	return model, found, diags
}
