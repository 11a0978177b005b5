package operations

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

const leaveName = "machine_leave"

// leavesOnChange says what a change of the machine does to the resource.
const leavesOnChange = " A change replaces the resource: the machine from before the change leaves."

// The choices of on_leave.
const (
	onLeaveReset    = "reset"
	onLeaveShutdown = "shutdown"
)

func leaverAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"machine": tf.RequiredString("The machine that leaves: its address, or the name of its node." +
			leavesOnChange),
		"uuid": tf.OptionalString("Hardware UUID (SMBIOS) of the machine; the provider leaves other hardware at its " +
			"address alone." + leavesOnChange),
		"on_leave": tf.OptionalString("What happens at the end: `reset` (the default) wipes the machine's state and "+
			"reboots it to maintenance mode. `shutdown` only shuts it down and keeps its disks."+
			tf.TerraformOnly,
			stringvalidator.OneOf(onLeaveReset, onLeaveShutdown)),
		"deletion_protection": tf.OptionalBool("Whether the last control plane is kept from leaving (default `true`). " +
			"With `false` it leaves, and the cluster and its etcd end." + tf.TerraformOnly),
	}
}

// leave takes the machine out of its cluster, as [cluster.PlanRemoval] decides.
func (a asked) leave(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, secrets string, s *session,
) (outcome, diag.Diagnostics) {
	want := a.leaving(ctx, p, s)
	going := want.Removed[0]

	result, err := s.runner.Remove(ctx, want)
	s.follow.End(ctx, err)

	warnings := append(machineset.WarnOfAway(result.Away), machineset.WarnOfUnwiped(result.Unwiped)...)
	if err == nil {
		warnings.Append(machineset.WarnOfNotReset(result.Left)...)
	}

	out, diags := outcome{done: machineset.LinesOf(result.Done)}, tf.Diagnostics(warnings)
	if err != nil {
		out.left = []string{going.Name}

		return out, append(diags, a.failed(ctx, p, out.left, result, err))
	}

	going.UUID = result.Snapshot.Machines[going.Name].UUID
	m.Ledger().NoteLeft(secrets, going)

	return out, diags
}

// leaving is the cluster without the machine: its handle lists control planes, and Kubernetes the others. Without an
// answer of Kubernetes, the handle and the machine itself say what the machine is.
func (a asked) leaving(ctx context.Context, p machineset.Set, s *session) cluster.Spec {
	want := providerdata.ControlPlanesOf(p)
	want.Joins, want.Bootstrapped, want.NodesBecomeReady = true, true, true
	want.Single, want.Ending = true, true
	want.Protected = a.leaver.protection.IsNull() || a.leaver.protection.ValueBool()

	nodes := s.api.Observe(ctx)
	going := a.going(nodes)

	is := func(m cluster.Machine) bool { return m.Address == going.Address }
	if slices.ContainsFunc(want.Machines, is) {
		going.Role = step.ControlPlane
	}

	listed := slices.DeleteFunc(want.Machines, is)
	want.OtherControlPlanes = append(listed, otherPlanes(listed, going, nodes)...)
	want.Machines, want.Removed = nil, []cluster.Machine{going}
	want.Removed[0] = recognized(going, s.runner.Observe(ctx, want))

	return want
}

// recognized is the machine with what it reports itself, and with its etcd member: a successor may join under the same
// name while the machine leaves.
func recognized(going cluster.Machine, have cluster.Snapshot) cluster.Machine {
	seen := have.Machines[going.Name]

	// Other hardware at the address keeps its node and its member.
	if going.UUID != "" && seen.UUID != "" && !strings.EqualFold(going.UUID, seen.UUID) {
		going.NodeName, going.MemberID = "", noMember

		return going
	}

	if going.NodeName == "" && seen.Role != "" {
		going.Role = seen.Role
	}

	going.Through = going.Through && going.Role == step.Worker

	if have.Etcd.Known {
		member, _ := have.MemberOf(going)
		going.MemberID = cmp.Or(member.ID, noMember)
	}

	return going
}

// noMember is the ID of no member: that of a machine that has none when it begins to leave.
const noMember = "none"

// going is the machine that leaves, with its node where Kubernetes knows one.
func (a asked) going(nodes kubestate.State) cluster.Machine {
	name := a.leaver.machine.ValueString()
	m := cluster.MachineAt(name, step.Worker, name)

	m.UUID, m.Through = a.leaver.uuid.ValueString(), a.through()
	m.Reset.ShutDown = a.leaver.onLeave.ValueString() == onLeaveShutdown

	node, known := (cluster.Snapshot{Kubernetes: nodes}).NodeOf(m)

	for _, n := range nodes.Nodes {
		if !known && n.Name == name && n.Address() != "" {
			node, known, m.Address = n, true, n.Address()
		}
	}

	if known {
		m.NodeName, m.Role = node.Name, cluster.RoleOf(node)
	}

	return m
}

// otherPlanes are the control planes among the nodes that are not in a list and do not leave.
func otherPlanes(listed []cluster.Machine, going cluster.Machine, nodes kubestate.State) []cluster.Machine {
	var others []cluster.Machine

	for _, n := range nodes.Nodes {
		is := func(m cluster.Machine) bool { return slices.Contains(n.Addresses, m.Address) }

		if n.ControlPlane && n.Name != going.NodeName && n.Address() != "" && !slices.ContainsFunc(listed, is) {
			others = append(others, cluster.MachineAt(n.Address(), step.ControlPlane, n.Address()))
		}
	}

	return others
}

// refuseContainers refuses machines in pods, which have no VM that ends without their resource.
func (a asked) refuseContainers(mode types.String) finding.List {
	if a.kind.name != leaveName || mode.ValueString() != clusterhandle.ContainerMode {
		return nil
	}

	return finding.List{leavesContainers.At(finding.Root("cluster").AtName("mode"), nil)}
}
