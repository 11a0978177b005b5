package officialstate

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// MovedKey is the key in private state for the inputs of the first read after a move. It requests the next refresh,
// which removes it, and records nothing.
const MovedKey = "moved"

// MoveMachine takes a machine over, as resource.StateMover does. It stores where the machine is, and the inputs of
// the refresh that follows.
func MoveMachine(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
	if !IsMachine(req.SourceTypeName) || !Is(req.SourceProviderAddress) ||
		req.SourceRawState == nil {
		return
	}

	machine, err := MachineOf(req.SourceRawState.JSON)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(machineNotMoved.With(
			finding.Args{"type": req.SourceTypeName, "cause": err.Error()})))

		return
	}

	name := cmp.Or(machine.Hostname, machine.Address)
	request := clusterimport.Request{Source: clusterimport.Source{Cluster: machine.Cluster},
		Machines: map[string]string{name: machine.Address}}

	if machine.Role == string(step.ControlPlane) {
		request.ControlPlane = request.Machines
	}

	resp.TargetState.Raw = tf.NullsOf(ctx, resp.TargetState.Schema.Type())

	for at, value := range map[string]string{"name": name, "address": machine.Address, "role": machine.Role} {
		resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root(at), value)...)
	}

	resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.TargetPrivate, MovedKey, request)...)
}
