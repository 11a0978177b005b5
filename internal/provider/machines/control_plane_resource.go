package machines

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                   = (*controlPlaneResource)(nil)
	_ resource.ResourceWithConfigure      = (*controlPlaneResource)(nil)
	_ resource.ResourceWithValidateConfig = (*controlPlaneResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*controlPlaneResource)(nil)
	_ resource.ResourceWithImportState    = (*controlPlaneResource)(nil)
)

// NewControlPlaneResource is the constructor of the resource talosop_control_plane.
func NewControlPlaneResource() resource.Resource {
	return &controlPlaneResource{machinesResource[ControlPlaneModel, *ControlPlaneModel]{kind: "talosop_control_plane"}}
}

// controlPlaneResource makes the control plane of a cluster: it is the only
// resource that bootstraps etcd.
type controlPlaneResource struct {
	machinesResource[ControlPlaneModel, *ControlPlaneModel]
}

func (r *controlPlaneResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := poolAttributes(ctx, "control-plane", true)
	maps.Copy(attributes, settingsAttributes())

	resp.Schema = schema.Schema{
		MarkdownDescription: "The control plane of a cluster, from machines that wait in maintenance mode to a " +
			"Kubernetes API that answers: it configures the machines, bootstraps etcd exactly once, and waits until every " +
			"member is healthy and every node is registered (and Ready, unless `cni` is `none`).\n\nA create that was begun " +
			"and could not finish is stored with its `phase` and a warning, and the next apply goes on; use a postcondition " +
			"on `phase` to make the run fail all the same.",
		Attributes: attributes,
	}
}

func (r *controlPlaneResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	request, bundle, diags := readImport(req.ID, importOfControlPlane, r.ProviderData)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = tf.MaskSecrets(ctx, bundle.Text)

	found, diags := clusterimport.Recognise(ctx, r.ProviderData, request.Machines,
		bundle, cluster.ControlPlane)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	model, diags := controlPlaneFrom(ctx, request, bundle, found)
	resp.Diagnostics.Append(diags...)

	life := model.life()
	resp.Diagnostics.Append(adopt(ctx, r.ProviderData, &life, model.MachineSet, bundle)...)
	model.setLife(life)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(model.derive(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
