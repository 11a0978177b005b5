package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                   = (*machineResource)(nil)
	_ resource.ResourceWithConfigure      = (*machineResource)(nil)
	_ resource.ResourceWithValidateConfig = (*machineResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*machineResource)(nil)
	_ resource.ResourceWithImportState    = (*machineResource)(nil)
	_ resource.ResourceWithIdentity       = (*machineResource)(nil)
	_ resource.ResourceWithUpgradeState   = (*machineResource)(nil)
)

// NewMachineResource is the constructor of the resource talosop_machine.
func NewMachineResource() resource.Resource {
	return &machineResource{machinesResource[OneMachineModel, *OneMachineModel]{
		kind: "talosop_machine", imports: clusterimport.OfMachine}}
}

// machineResource joins one machine of either role to a cluster by its handle. One of them bootstraps the etcd of
// each cluster.
type machineResource struct {
	machinesResource[OneMachineModel, *OneMachineModel]
}

func (r *machineResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: schemaVersion,
		MarkdownDescription: "One machine of either role, for `for_each`, in a cluster known by its handle; a whole " +
			"cluster needs `bootstrap = true` on exactly one control plane.\n\nDestroying it resets the machine and removes " +
			"it from its cluster, unless `on_destroy` is `preserve` ([guide](../guides/renames-and-moves)). For similar " +
			"machines, `talosop_cluster`, `talosop_control_plane` and `talosop_worker` make fewer calls and order changes " +
			"across machines; a plan of `talosop_machine` covers one machine.",
		Attributes: tf.WithTypes(oneMachineAttributes(ctx)),
	}
}
