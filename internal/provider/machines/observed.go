package machines

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// PriorState is what state knows of a pool.
type PriorState struct {
	phase    cluster.Phase
	Machines map[string]cluster.MachineState
	// members, addresses and drift are what is recorded beside that, by machine.
	members   map[string]string
	addresses map[string]string
	drift     map[string][]string
	// kubernetes is the versions that run, by machine and component.
	kubernetes map[string]map[cluster.Component]string
	// pods is what the pods of machines in containers were made with, and replace what those are replaced for that
	// were made with something else than is wanted now.
	pods, Replace map[string]string
	// Peers are the addresses at which the etcd of others finds machines in containers.
	Peers map[string]netip.Addr
	// manifests is the Kubernetes whose bootstrap manifests the cluster has.
	manifests string
	// restored is the snapshot that etcd began with last.
	restored restored

	// What compare finds out. removed are the machines that leave; moved has the former
	// addresses, renamed the former names of machines; replaced has the names of those
	// that left to other hardware. relocated tells that a machine has to be looked for.
	removed   []cluster.Machine
	moved     map[string]string
	renamed   map[string]string
	replaced  map[string]string
	relocated bool
	// containers is whether the machines are pods of a host cluster.
	containers bool
	// left are machines that an earlier update left behind, for a destroy.
	left []cluster.Machine
}

// Recorded reads what state knows. The receiver is a model of state, and p the pool
// in it; a model of a resource that does not exist yet knows nothing.
func (m CommonModel) Recorded(ctx context.Context, p MachineSet) (PriorState, finding.List) {
	r := &tf.Reader{}
	out := PriorState{
		phase: m.recordedPhase(), Machines: map[string]cluster.MachineState{},
		members: map[string]string{}, addresses: map[string]string{}, drift: map[string][]string{}, pods: map[string]string{},
		Peers:      map[string]netip.Addr{},
		kubernetes: map[string]map[cluster.Component]string{}, manifests: m.manifests.ValueString(),
		restored: m.restored,
	}

	// A state that was written before this was recorded has the version that it applied.
	if out.manifests == "" && p.ownsControlPlane() && bootstrapped(out.phase) {
		out.manifests = p.Settings.KubernetesVersion
	}

	for name, o := range tf.Objects[observedModel](ctx, r, m.Observed) {
		role := p.roleOf(name)
		state := cluster.MachineState{
			Access: cluster.Member, Role: role,
			Stage: cluster.Stage(o.Stage.ValueString()), Ready: o.Ready.ValueBool(),
			UUID: o.UUID.ValueString(), BootID: o.BootID.ValueString(), TalosVersion: o.TalosVersion.ValueString(),
			Platform: o.Platform.ValueString(), Schematic: o.Schematic.ValueString(), Installer: o.Installer.ValueString(),
			NodeName: o.NodeName.ValueString(), ConfigDigest: o.ConfigDigest.ValueString(), Images: byComponent(o.Images),
			RestoredAt: tf.TimeIn(o.RestoredAt),
		}

		// A pod that is missing is made before anything else happens, and waits for its configuration.
		if state.Stage == cluster.StageMaintenance || o.Stage.ValueString() == StageGone {
			state.Access, state.Stage = cluster.Maintenance, cluster.StageMaintenance
		}

		// The machines of state say what META held when it was last read or written.
		if state.Access == cluster.Member {
			state.Meta = p.Machines[name].meta.keyed()
		}

		// A control plane that was configured and has no member waits for etcd to
		// begin, and says Preparing until then (Talos 1.10 to 1.13).
		if role == cluster.ControlPlane && state.Access == cluster.Member && o.MemberID.IsNull() && !bootstrapped(out.phase) {
			state.EtcdService = cluster.ServicePreparing
		}

		out.drift[name], _ = tf.KnownStrings(o.Drift)

		if RecordedHostDrift(out.drift[name], false).VolumesLost {
			state.Access, state.Stage, state.Ready, state.VolumesLost = cluster.Unreachable, "", false, true
		}

		out.Machines[name] = state
		out.members[name] = o.MemberID.ValueString()
		out.addresses[name] = o.Address.ValueString()
		out.kubernetes[name] = byComponent(o.Kubernetes)
		out.pods[name] = o.PodDigest.ValueString()

		// One that is gone is made and configured anew, with the address that the host gives it then.
		if peer, err := netip.ParseAddr(o.PeerAddress.ValueString()); err == nil && o.Stage.ValueString() != StageGone {
			out.Peers[name] = peer
		}
	}

	return out, tf.Findings(r.Diags)
}

// StageGone is told of a container that its host cluster does not have any more.
const StageGone = "gone"

// observed is what a snapshot shows of the machines of a spec, and of those that are to
// leave. Machines that the snapshot did not reach keep what prior has of them.
func observed(want cluster.Spec, have cluster.Snapshot, prior types.Map) types.Map {
	values := map[string]attr.Value{}
	kept := map[string]attr.Value{}

	if !prior.IsNull() && !prior.IsUnknown() {
		maps.Copy(kept, prior.Elements())
	}

	for _, m := range want.Known() {
		state := have.Machines[m.Name]

		switch state.Access {
		case cluster.Member, cluster.Maintenance, cluster.Gone:
			values[m.Name] = ObservedMachine(m, state, have, kept[m.Name])
		default:
			if last, ok := kept[m.Name]; ok {
				values[m.Name] = last
			}
		}
	}

	return types.MapValueMust(ObservedType(), values)
}

// ObservedMachine describes one machine. What only Kubernetes and etcd know is
// kept from the last time while they do not answer.
func ObservedMachine(m cluster.Machine, s cluster.MachineState, have cluster.Snapshot, last attr.Value) attr.Value {
	var prior map[string]attr.Value
	if object, ok := last.(types.Object); ok {
		prior = object.Attributes()
	}

	stage := s.Stage

	switch s.Access {
	case cluster.Maintenance:
		stage = cluster.StageMaintenance
	case cluster.Gone:
		stage = StageGone
	default:
	}

	seen := sight{prior: prior, values: map[string]attr.Value{
		"address":         types.StringValue(cmp.Or(s.FoundAt, m.Address)),
		"platform":        tf.TextOrNull(s.Platform),
		"drift":           tf.TextList(nil),
		"stage":           tf.TextOrNull(string(stage)),
		"ready":           types.BoolValue(s.Ready && s.Access == cluster.Member),
		"talos_version":   tf.TextOrNull(s.TalosVersion),
		"schematic":       tf.TextOrNull(s.Schematic),
		"uuid":            tf.TextOrNull(s.UUID),
		"boot_id":         tf.TextOrNull(s.BootID),
		"config_digest":   tf.TextOrNull(s.ConfigDigest),
		"node_name":       tf.TextOrNull(s.NodeName),
		"kubelet_version": types.StringNull(),
		"member_id":       types.StringNull(),
		"installer":       types.StringNull(),
		"images":          componentMap(s.Images),
		"kubernetes":      types.MapNull(types.StringType),

		"etcd_restored_at": tf.TimeOrNull(s.RestoredAt),
		"pod_digest":       types.StringNull(),
		"peer_address":     types.StringNull(),
	}}

	seen.Keep("installer")
	seen.Keep("pod_digest")

	if s.Access != cluster.Gone {
		seen.Keep("peer_address")
	}

	if s.Access == cluster.Member {
		seen.node(m, s, have)
		seen.member(m, have)
	} else {
		seen.remains(have)
	}

	return types.ObjectValueMust(ObservedType().AttrTypes, seen.values)
}

// sight is the values of one machine, and those of the last time.
type sight struct {
	values, prior map[string]attr.Value
}

func (s sight) Keep(name string) {
	if old, ok := s.prior[name]; ok {
		s.values[name] = old
	}
}

// node adds what Kubernetes knows of a machine.
func (s sight) node(m cluster.Machine, state cluster.MachineState, have cluster.Snapshot) {
	node, registered := have.NodeOf(m)

	switch {
	case registered:
		s.values["node_name"] = tf.TextOrNull(node.Name)
		s.values["kubelet_version"] = tf.TextOrNull(node.KubeletVersion)
		s.values["kubernetes"] = componentMap(runningOn(node))

		if state.BootID == "" {
			s.values["boot_id"] = tf.TextOrNull(node.BootID)
		}
	case !have.Kubernetes.Reachable:
		s.Keep("kubelet_version")
		s.Keep("kubernetes")

		if state.NodeName == "" {
			s.Keep("node_name")
		}

		if state.BootID == "" {
			s.Keep("boot_id")
		}
	}
}

// member adds what etcd knows of a control plane.
func (s sight) member(m cluster.Machine, have cluster.Snapshot) {
	if m.Role != cluster.ControlPlane {
		return
	}

	// Not every look is for it, and etcd forgets: a boot is about one etcd.
	if s.values["etcd_restored_at"].IsNull() && s.prior["boot_id"] != nil && s.prior["boot_id"].Equal(s.values["boot_id"]) {
		s.Keep("etcd_restored_at")
	}

	if member, ok := have.MemberOf(m); ok {
		s.values["member_id"] = tf.TextOrNull(member.ID)
	} else if !have.Etcd.Known {
		s.Keep("member_id")
	}
}

// remains keeps the node and the member of a machine that lost its configuration, as long
// as the cluster may still have them: they have to be removed when the machine is.
func (s sight) remains(have cluster.Snapshot) {
	if node, ok := s.prior["node_name"].(types.String); ok && !node.IsNull() {
		left := slices.ContainsFunc(have.Kubernetes.Nodes, func(n cluster.Node) bool { return n.Name == node.ValueString() })
		if left || !have.Kubernetes.Reachable {
			s.Keep("node_name")
		}
	}

	if member, ok := s.prior["member_id"].(types.String); ok && !member.IsNull() {
		left := slices.ContainsFunc(have.Etcd.Members, func(e cluster.EtcdMember) bool { return e.ID == member.ValueString() })
		if left || !have.Etcd.Known {
			s.Keep("member_id")
		}
	}
}

// unanswered tells, machine by machine, what a snapshot could not learn, and why that is so for those whose data is lost.
func unanswered(want cluster.Spec, have cluster.Snapshot) (unreachable, foreign, bereft []string) {
	for _, m := range want.Machines {
		state := have.Machines[m.Name]

		switch state.Access {
		case cluster.Unreachable, cluster.Unobserved:
			if state.VolumesLost {
				bereft = append(bereft, m.Name+": "+state.Cause)

				continue
			}

			unreachable = append(unreachable, fmt.Sprintf("%s (%s): %s", m.Name, m.Address, cmp.Or(state.Cause, "not asked in time")))
		case cluster.Foreign:
			foreign = append(foreign, fmt.Sprintf("%s (%s): %s", m.Name, m.Address, cmp.Or(state.Cause, "answers as somebody else")))
		case cluster.Member, cluster.Maintenance, cluster.Gone:
		}
	}

	return unreachable, foreign, bereft
}
