package machines

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Observations of machines go into record, complete and for the provider alone, and into attributes for people and
// policies. Plans and applies start from record.

// remember stores the record of the machines.
func (m *CommonModel) remember(machines record.Machines) {
	m.Record, m.observations = types.StringValue(machines.Encode()), shown(machines)
}

// shown is the part of the record for people.
func shown(machines record.Machines) observations {
	observed, talos, kubernetes := map[string]attr.Value{}, map[string]attr.Value{}, map[string]attr.Value{}

	for name, m := range machines {
		observed[name] = shownOne(m)
		talos[name], kubernetes[name] = tf.TextOrNull(m.TalosVersion), tf.TextOrNull(m.KubeletVersion)
	}

	return observations{
		Observed: types.MapValueMust(ObservedType(), observed), Talos: types.MapValueMust(types.StringType, talos),
		Kubernetes: types.MapValueMust(types.StringType, kubernetes),
	}
}

// noObservations are those of a resource that was not read yet, and unknownObservations those after its create.
func noObservations() observations {
	versions := types.MapNull(types.StringType)

	return observations{types.MapNull(ObservedType()), versions, versions}
}

func unknownObservations() observations {
	versions := types.MapUnknown(types.StringType)

	return observations{types.MapUnknown(ObservedType()), versions, versions}
}

func shownOne(m record.Machine) types.Object {
	return types.ObjectValueMust(ObservedType().AttrTypes, map[string]attr.Value{
		"address": tf.TextOrNull(m.Address), "uuid": tf.TextOrNull(m.UUID),
		"stage": tf.TextOrNull(string(m.Stage)), "ready": types.BoolValue(m.Ready),
		"node_name": tf.TextOrNull(m.NodeName),
		"drift":     tf.TextList(m.Drift.Lines()),
	})
}

// remembered is the record of the machines in state.
func (m CommonModel) remembered() (record.Machines, finding.List) {
	machines, err := record.Decode(m.Record.ValueString())
	if err != nil {
		return nil, finding.List{recordUnreadable.At(finding.Root("record"), finding.Args{"cause": err.Error()})}
	}

	return machines, nil
}

// Recorded reads what state records. The receiver is a model of state, and p the set in it; the model of a resource
// that does not exist yet has no record.
func (m CommonModel) Recorded(ctx context.Context, p machineset.Set) (machineset.Record, finding.List) {
	seen, found := m.remembered()
	if found.HasError() {
		return machineset.Record{}, found
	}

	r := &tf.Reader{}
	out := machineset.Record{
		Phase: m.recordedPhase(), Machines: map[string]step.MachineState{}, Seen: seen,
		Manifests:    m.manifests.ValueString(),
		RestoredFrom: m.restored.From.ValueString(), RestoredAt: m.restored.when(),
		Unmanaged: unmanaged.Recorded(ctx, r, m.others),
	}

	// A state from before this was recorded has the version that it applied.
	if out.Manifests == "" && p.OwnsControlPlane() && machineset.Bootstrapped(out.Phase) {
		out.Manifests = p.Settings.KubernetesVersion
	}

	for name, machine := range seen {
		state := recordedMachine(machine, p.RoleOf(name), out.Phase)

		// The machines in state have the META values of the last read or write.
		if state.Access == step.Member {
			state.Meta = p.Machines[name].Meta.Keyed()
		}

		out.Machines[name] = state
	}

	return out, tf.Findings(r.Diags)
}

// recordedMachine is a machine as last observed, where a plan starts.
func recordedMachine(m record.Machine, role step.Role, phase cluster.Phase) step.MachineState {
	state := step.MachineState{
		Access: step.Member, Role: role,
		Stage: m.Stage, Ready: m.Ready, UUID: m.UUID, BootID: m.BootID, TalosVersion: m.TalosVersion,
		Platform: m.Platform, Schematic: m.Schematic, Extensions: m.Extensions, Installer: m.Installer,
		NodeName: m.NodeName, ConfigDigest: m.ConfigDigest, StagedDigest: m.StagedDigest, Images: m.Images,
		Keys: m.Keys, RestoredAt: m.RestoredAt, Soaks: m.Soaks,
		Claimed: m.Drift.Has(record.OwnedByAnother), MarkUnproven: m.Drift.Has(record.MarkUnproven),
	}

	// A missing pod is created before anything else happens, and waits for its configuration.
	if state.Stage == step.StageMaintenance || m.Stage == record.StageGone {
		state.Access, state.Stage = step.Maintenance, step.StageMaintenance
	}

	// A configured control plane without a member waits for the bootstrap of etcd, and reports Preparing until then
	// (Talos 1.10 to 1.13).
	if role == step.ControlPlane && state.Access == step.Member && m.MemberID == "" && !machineset.Bootstrapped(phase) {
		state.EtcdService = step.ServicePreparing
	}

	if m.Drift.Has(record.LeftEtcd) {
		state.EtcdService = step.ServiceFinished
	}

	if m.Drift.Has(record.HostVolumesLost) {
		state.Access, state.Stage, state.Ready, state.VolumesLost = step.Unreachable, "", false, true
	}

	return state
}

// observed is what a snapshot shows of the machines of a spec, and of the leaving ones. Machines that the snapshot
// did not reach keep their record.
func observed(want cluster.Spec, have cluster.Snapshot, last record.Machines) record.Machines {
	seen := record.Machines{}

	for _, m := range slices.Concat(want.Machines, want.Removed) {
		before, known := last[m.Name]

		switch state := have.Machines[m.Name]; state.Access {
		case step.Member, step.Maintenance, step.Gone:
			seen[m.Name] = seenMachine(m, state, have, before)
		default:
			if known {
				seen[m.Name] = before
			}
		}
	}

	return seen
}

// seenMachine describes one machine. Facts from Kubernetes and etcd are kept while these do not answer.
func seenMachine(m cluster.Machine, s step.MachineState, have cluster.Snapshot, last record.Machine) record.Machine {
	now := record.Machine{
		Address: cmp.Or(s.FoundAt, m.Address), Stage: stageOf(s), Ready: s.Ready && s.Access == step.Member,
		// An answer without a hardware UUID does not remove the recorded one.
		UUID: cmp.Or(s.UUID, last.UUID), BootID: s.BootID, Platform: s.Platform, TalosVersion: s.TalosVersion,
		Schematic: s.Schematic, Extensions: s.Extensions, Installer: last.Installer,
		ConfigDigest: s.ConfigDigest, StagedDigest: s.StagedDigest, Keys: s.Keys, Images: s.Images,
		NodeName: s.NodeName, RestoredAt: s.RestoredAt.UTC(), PodDigest: last.PodDigest,
		Link: cmp.Or(s.Link, last.Link),
	}

	if s.Access != step.Gone {
		now.PeerAddress = last.PeerAddress
	}

	if s.Access != step.Member {
		keepRemains(&now, last, have)

		return now
	}

	// Whether its configuration sets no host name.
	now.HostnameUnset = m.WantedNode == "" && last.HostnameUnset

	seeNode(&now, m, have, last)
	seeMember(&now, m, have, last)

	return now
}

func stageOf(s step.MachineState) step.Stage {
	switch s.Access {
	case step.Maintenance:
		return step.StageMaintenance
	case step.Gone:
		return record.StageGone
	default:
		return s.Stage
	}
}

// seeNode adds the facts of a machine from Kubernetes.
func seeNode(now *record.Machine, m cluster.Machine, have cluster.Snapshot, last record.Machine) {
	node, registered := have.NodeOf(m)

	switch {
	case registered:
		now.NodeName, now.KubeletVersion, now.Running = node.Name, node.KubeletVersion, machineset.RunningOn(node)
		now.BootID, now.Soaks = cmp.Or(now.BootID, node.BootID), node.Soak.Due
	case !have.Kubernetes.Reachable:
		now.KubeletVersion, now.Running, now.Soaks = last.KubeletVersion, last.Running, last.Soaks
		now.NodeName, now.BootID = cmp.Or(now.NodeName, last.NodeName), cmp.Or(now.BootID, last.BootID)
	}
}

// seeMember adds the facts of a control plane from etcd.
func seeMember(now *record.Machine, m cluster.Machine, have cluster.Snapshot, last record.Machine) {
	if m.Role != step.ControlPlane {
		return
	}

	// Not every observation includes it, and etcd does not keep it: a boot belongs to one etcd.
	if now.RestoredAt.IsZero() && last.BootID == now.BootID {
		now.RestoredAt = last.RestoredAt
	}

	if member, ok := have.MemberOf(m); ok {
		now.MemberID = member.ID
	} else if !have.Etcd.Known {
		now.MemberID = last.MemberID
	}
}

// keepRemains keeps the node and the member of a machine that lost its configuration, as long as the cluster may
// still have them: they have to be removed with the machine.
func keepRemains(now *record.Machine, last record.Machine, have cluster.Snapshot) {
	isNode := func(n kubestate.Node) bool { return n.Name == last.NodeName }
	if !have.Kubernetes.Reachable || slices.ContainsFunc(have.Kubernetes.Nodes, isNode) {
		now.NodeName = cmp.Or(last.NodeName, now.NodeName)
	}

	isMember := func(e etcdstate.Member) bool { return e.ID == last.MemberID }
	if !have.Etcd.Known || slices.ContainsFunc(have.Etcd.Members, isMember) {
		now.MemberID = last.MemberID
	}
}

// withDrift is the observations of machines with the drift of those that answered.
func withDrift(seen record.Machines, drift map[string]record.Drift) record.Machines {
	for name, differences := range drift {
		seen.Change(name, func(m *record.Machine) { m.Drift = differences })
	}

	return seen
}

// driftIn is the drift of machines.
func driftIn(machines record.Machines) map[string]record.Drift {
	drift := map[string]record.Drift{}
	for name, m := range machines {
		drift[name] = m.Drift
	}

	return drift
}
