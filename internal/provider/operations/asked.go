package operations

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// asked is an operation as configured. Arguments that a kind does not have are null.
type asked struct {
	kind kind

	cluster        types.Object
	machines       types.List
	access         types.String
	service        types.String
	drain          types.Object
	maxUnavailable types.String
	wipe           types.List
	userDisks      types.List
	path           types.String
	overwrite      types.Bool
	leaver         leaver
}

// getter reads one attribute of a configuration or a plan.
type getter interface {
	GetAttribute(ctx context.Context, at path.Path, target any) diag.Diagnostics
}

// leaver is the machine that leaves, as configured.
type leaver struct {
	machine, uuid, onLeave types.String
	protection             types.Bool
}

// read reads the arguments of a kind.
func (k kind) read(ctx context.Context, from getter) (asked, diag.Diagnostics) {
	var diags diag.Diagnostics

	a := asked{kind: k}
	targets := map[string]any{"cluster": &a.cluster, "machines": &a.machines, "access": &a.access,
		"service": &a.service, "wipe": &a.wipe, "user_disks": &a.userDisks,
		"drain": &a.drain, "max_unavailable": &a.maxUnavailable, "path": &a.path,
		"overwrite": &a.overwrite, "machine": &a.leaver.machine, "uuid": &a.leaver.uuid, "on_leave": &a.leaver.onLeave,
		"deletion_protection": &a.leaver.protection}

	for name := range k.arguments() {
		diags.Append(from.GetAttribute(ctx, path.Root(name), targets[name])...)
	}

	return a, diags
}

// operation is the operation on each machine.
func (a asked) operation() operation.Operation {
	return operation.Operation{Kind: a.kind.kind, Service: a.service.ValueString(), Wipe: a.selected()}
}

// selected is what a reset wipes: EPHEMERAL, unless something else is named.
func (a asked) selected() wipe.Selection {
	volumes, disks := (&tf.Reader{}).Texts(a.wipe), (&tf.Reader{}).Texts(a.userDisks)
	if a.kind.kind == operation.Reset && a.wipe.IsNull() && a.userDisks.IsNull() {
		volumes = []string{wipe.Ephemeral}
	}

	return wipe.Select(volumes, disks)
}

// unknown reports whether the text of the operation depends on a value that is only known later.
func (a asked) unknown() bool {
	r := &tf.Reader{}
	r.Texts(a.wipe)
	r.Texts(a.userDisks)

	return r.Unknown || a.service.IsUnknown()
}

// named are the machines that the configuration names; nil for none.
func (a asked) named() []string { return (&tf.Reader{}).Texts(a.machines) }

// through reports whether workers are reached through control planes.
func (a asked) through() bool { return a.access.ValueString() == machineset.AccessThroughControlPlane }

// put puts the rollout settings into a set.
func (a asked) put(ctx context.Context, p *machineset.Set) {
	changes := rollout.Unset()
	if !a.drain.IsNull() {
		changes.Drain = a.drain
	}

	changes.Put(ctx, p)
}

// evacuation is how nodes are taken out of service, as far as the configuration says.
func (a asked) evacuation() step.Evacuation {
	on := func(name string) bool {
		value, _ := a.drain.Attributes()[name].(types.Bool)

		takesOut := a.operation().Reboots() || a.kind.kind == operation.Leave

		return takesOut && (value.IsNull() || value.IsUnknown() || value.ValueBool())
	}

	return step.Evacuation{Drain: on("enabled"), Volumes: on("wait_for_volumes")}
}

// forecast lists the operations on the machines that the configuration names; unknown when they are determined
// later.
func (a asked) forecast() types.List {
	known := a.machines.Elements()
	if a.machines.IsNull() || a.machines.IsUnknown() || a.unknown() {
		return types.ListUnknown(types.StringType)
	}

	var lines []attr.Value

	for _, element := range known {
		machine, ok := element.(types.String)
		if !ok || machine.IsUnknown() {
			return types.ListUnknown(types.StringType)
		}

		lines = append(lines, types.StringValue(a.operation().On(machine.ValueString(), a.evacuation().Steps())))
	}

	return types.ListValueMust(types.StringType, lines)
}
