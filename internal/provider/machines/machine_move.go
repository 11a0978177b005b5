package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/officialstate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var _ resource.ResourceWithMoveState = (*machineResource)(nil)

// MoveState takes a machine over from a resource of the official provider, in a `moved` block. A move gets only the
// state of that resource, so the refresh that follows reads the rest from the machine, as an import does.
func (r *machineResource) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{StateMover: officialstate.MoveMachine}}
}

// Read reads a moved machine from itself, and any other like all resources with machines.
func (r *machineResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var request clusterimport.Request

	resp.Diagnostics.Append(tf.ReadPrivate(ctx, req.Private, officialstate.MovedKey, &request)...)

	if len(request.Machines) == 0 || resp.Diagnostics.HasError() {
		r.machinesResource.Read(ctx, req, resp)

		return
	}

	file, err := request.Read(r.ProviderData)
	if err != nil {
		resp.Diagnostics.Append(clusterimport.ImportFailed("find the secrets of a machine that was moved here", err,
			"Give the secrets to the provider, in `clusters`.")...)

		return
	}

	resp.Diagnostics.Append(r.takeOver(ctx, request, file, r.readOff, &resp.State, resp.Identity)...)

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, officialstate.MovedKey, clusterimport.Request{})...)
	}
}
