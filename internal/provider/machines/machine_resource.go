package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

var (
	_ resource.Resource                   = (*machineResource)(nil)
	_ resource.ResourceWithConfigure      = (*machineResource)(nil)
	_ resource.ResourceWithValidateConfig = (*machineResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*machineResource)(nil)
	_ resource.ResourceWithImportState    = (*machineResource)(nil)
)

// NewMachineResource is the constructor of the resource talosop_machine.
func NewMachineResource() resource.Resource {
	return &machineResource{machinesResource[OneMachineModel, *OneMachineModel]{kind: "talosop_machine"}}
}

// machineResource joins one machine of either role to a cluster that it knows by its
// handle. One of them, for each cluster, begins its etcd.
type machineResource struct {
	machinesResource[OneMachineModel, *OneMachineModel]
}

func (r *machineResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One machine of either role, for `for_each` over machines. It joins a cluster that it knows " +
			"by its handle: that of `talosop_cluster` or `talosop_control_plane`, or one written by hand. A whole cluster can " +
			"be made of these resources in one apply: exactly one of its control planes says `bootstrap = true` and begins " +
			"etcd, all others wait for it and join.\n\nDestroying one machine takes it out of a cluster that lives on: a " +
			"control plane leaves etcd first, a worker is drained; then it is reset into maintenance mode, and its node is " +
			"deleted. The last control plane is reset as it is, and etcd's data with it, once `deletion_protection = " +
			"false` was applied. When all machines are destroyed at once, they leave one after the other until the " +
			"control plane is gone, and what is left is reset at once; with `drain = { enabled = false }`, applied " +
			"before, nothing waits for pods that find no other node. With `on_destroy = \"preserve\"` the machine " +
			"keeps running.\n\nWhere machines are alike, `talosop_cluster`, `talosop_control_plane` and " +
			"`talosop_worker` need fewer calls and order changes across their machines; a plan of `talosop_machine` " +
			"sees one machine only.",
		Attributes: oneMachineAttributes(ctx),
	}
}
