package machines

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Recorded reads what state knows. The receiver is a model of state, and p the set
// in it; a model of a resource that does not exist yet knows nothing.
func (m CommonModel) Recorded(ctx context.Context, p machineset.Set) (machineset.Record, finding.List) {
	r := &tf.Reader{}
	out := machineset.Record{
		Phase: m.recordedPhase(), Machines: map[string]cluster.MachineState{},
		Members: map[string]string{}, Addresses: map[string]string{}, Drift: map[string]machineset.Drift{},
		Pods:       map[string]string{},
		Peers:      map[string]netip.Addr{},
		Kubernetes: map[string]map[kubenames.Component]string{}, Manifests: m.manifests.ValueString(),
		HostnameUnset: hostnamesUnset(tf.Objects[observedModel](ctx, r, m.Observed)),
		RestoredFrom:  m.restored.From.ValueString(), RestoredAt: m.restored.when(),
		Unmanaged: unmanaged.Recorded(ctx, r, m.others),
	}

	// A state that was written before this was recorded has the version that it applied.
	if out.Manifests == "" && p.OwnsControlPlane() && machineset.Bootstrapped(out.Phase) {
		out.Manifests = p.Settings.KubernetesVersion
	}

	for name, o := range tf.Objects[observedModel](ctx, r, m.Observed) {
		state := recordedMachine(o, p.RoleOf(name), out.Phase)

		// The machines of state say what META held when it was last read or written.
		if state.Access == step.Member {
			state.Meta = p.Machines[name].Meta.Keyed()
		}

		out.Drift[name] = o.drift()

		state.Claimed = out.Drift[name].Has(machineset.OwnedByAnother)
		state.MarkUnproven = out.Drift[name].Has(machineset.MarkUnproven)

		if out.Drift[name].Has(machineset.LeftEtcd) {
			state.EtcdService = cluster.ServiceFinished
		}

		if out.Drift[name].Has(machineset.HostVolumesLost) {
			state.Access, state.Stage, state.Ready, state.VolumesLost = step.Unreachable, "", false, true
		}

		out.Machines[name] = state
		out.Members[name] = o.MemberID.ValueString()
		out.Addresses[name] = o.Address.ValueString()
		out.Kubernetes[name] = byComponent(o.Kubernetes)
		out.Pods[name] = o.PodDigest.ValueString()

		// One that is gone is made and configured anew, with the address that the host gives it then.
		if peer, err := netip.ParseAddr(o.PeerAddress.ValueString()); err == nil &&
			o.Stage.ValueString() != machineset.StageGone {
			out.Peers[name] = peer
		}
	}

	return out, tf.Findings(r.Diags)
}

// hostnamesUnset are the machines of a record that were imported without a host name in their configuration.
func hostnamesUnset(records map[string]observedModel) map[string]bool {
	unset := map[string]bool{}

	for name, o := range records {
		if o.HostnameUnset.ValueBool() {
			unset[name] = true
		}
	}

	return unset
}

// recordedMachine is a machine as it was last seen.
func recordedMachine(o observedModel, role step.Role, phase cluster.Phase) cluster.MachineState {
	state := cluster.MachineState{
		Access: step.Member, Role: role,
		Stage: cluster.Stage(o.Stage.ValueString()), Ready: o.Ready.ValueBool(),
		UUID: o.UUID.ValueString(), BootID: o.BootID.ValueString(), TalosVersion: o.TalosVersion.ValueString(),
		Platform: o.Platform.ValueString(), Schematic: o.Schematic.ValueString(), Installer: o.Installer.ValueString(),
		NodeName: o.NodeName.ValueString(), ConfigDigest: o.ConfigDigest.ValueString(), Images: byComponent(o.Images),
		Keys:         rotation.ParseKeys(o.Keys.ValueString()),
		StagedDigest: o.StagedDigest.ValueString(),
		RestoredAt:   tf.TimeIn(o.RestoredAt),
	}

	for _, element := range o.Extensions.Elements() {
		if name, ok := element.(types.String); ok {
			state.Extensions = append(state.Extensions, name.ValueString())
		}
	}

	// A pod that is missing is made before anything else happens, and waits for its configuration.
	if state.Stage == cluster.StageMaintenance || o.Stage.ValueString() == machineset.StageGone {
		state.Access, state.Stage = step.Maintenance, cluster.StageMaintenance
	}

	// A control plane that was configured and has no member waits for etcd to
	// begin, and says Preparing until then (Talos 1.10 to 1.13).
	if role == step.ControlPlane && state.Access == step.Member && o.MemberID.IsNull() &&
		!machineset.Bootstrapped(phase) {
		state.EtcdService = cluster.ServicePreparing
	}

	return state
}

// observed is what a snapshot shows of the machines of a spec, and of those that are to
// leave. Machines that the snapshot did not reach keep what prior has of them.
func observed(want cluster.Spec, have cluster.Snapshot, prior types.Map) types.Map {
	values := map[string]attr.Value{}
	kept := map[string]attr.Value{}

	if !prior.IsNull() && !prior.IsUnknown() {
		maps.Copy(kept, prior.Elements())
	}

	for _, m := range slices.Concat(want.Machines, want.Removed) {
		state := have.Machines[m.Name]

		switch state.Access {
		case step.Member, step.Maintenance, step.Gone:
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
	case step.Maintenance:
		stage = cluster.StageMaintenance
	case step.Gone:
		stage = machineset.StageGone
	default:
	}

	seen := sight{prior: prior, Values: map[string]attr.Value{
		"address":       types.StringValue(cmp.Or(s.FoundAt, m.Address)),
		"platform":      tf.TextOrNull(s.Platform),
		"drift":         tf.TextList(nil),
		"stage":         tf.TextOrNull(string(stage)),
		"ready":         types.BoolValue(s.Ready && s.Access == step.Member),
		"talos_version": tf.TextOrNull(s.TalosVersion),
		"schematic":     tf.TextOrNull(s.Schematic), "extensions": tf.ListOrNull(s.Extensions),
		"uuid":            tf.TextOrNull(s.UUID),
		"boot_id":         tf.TextOrNull(s.BootID),
		"config_digest":   tf.TextOrNull(s.ConfigDigest),
		"keys":            tf.TextOrNull(s.Keys.String()),
		"node_name":       tf.TextOrNull(s.NodeName),
		"kubelet_version": types.StringNull(),
		"member_id":       types.StringNull(),
		"installer":       types.StringNull(),
		"images":          componentMap(s.Images),
		"kubernetes":      types.MapNull(types.StringType),

		"staged_config_digest": tf.TextOrNull(s.StagedDigest),
		"etcd_restored_at":     tf.TimeOrNull(s.RestoredAt),
		"pod_digest":           types.StringNull(),
		"peer_address":         types.StringNull(),
		"hostname_unset":       types.BoolNull(),
	}}

	// Whoever answers without a hardware UUID does not take away the one that is known.
	if s.UUID == "" {
		seen.Keep("uuid")
	}

	seen.Keep("installer")
	seen.Keep("pod_digest")

	if s.Access != step.Gone {
		seen.Keep("peer_address")
	}

	if s.Access == step.Member {
		seen.node(m, s, have)
		seen.member(m, have)
	} else {
		seen.remains(have)
	}

	return types.ObjectValueMust(ObservedType().AttrTypes, seen.Values)
}

// sight is the values of one machine, and those of the last time.
type sight struct {
	Values, prior map[string]attr.Value
}

func (s sight) Keep(name string) {
	if old, ok := s.prior[name]; ok {
		s.Values[name] = old
	}
}

// node adds what Kubernetes knows of a machine, and whether its configuration leaves its name to others.
func (s sight) node(m cluster.Machine, state cluster.MachineState, have cluster.Snapshot) {
	if m.WantedNode == "" {
		s.Keep("hostname_unset")
	}

	node, registered := have.NodeOf(m)

	switch {
	case registered:
		s.Values["node_name"] = tf.TextOrNull(node.Name)
		s.Values["kubelet_version"] = tf.TextOrNull(node.KubeletVersion)
		s.Values["kubernetes"] = componentMap(machineset.RunningOn(node))

		if state.BootID == "" {
			s.Values["boot_id"] = tf.TextOrNull(node.BootID)
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
	if m.Role != step.ControlPlane {
		return
	}

	// Not every look is for it, and etcd forgets: a boot is about one etcd.
	if s.Values["etcd_restored_at"].IsNull() && s.prior["boot_id"] != nil &&
		s.prior["boot_id"].Equal(s.Values["boot_id"]) {
		s.Keep("etcd_restored_at")
	}

	if member, ok := have.MemberOf(m); ok {
		s.Values["member_id"] = tf.TextOrNull(member.ID)
	} else if !have.Etcd.Known {
		s.Keep("member_id")
	}
}

// remains keeps the node and the member of a machine that lost its configuration, as long
// as the cluster may still have them: they have to be removed when the machine is.
func (s sight) remains(have cluster.Snapshot) {
	if node, ok := s.prior["node_name"].(types.String); ok && !node.IsNull() {
		left := slices.ContainsFunc(have.Kubernetes.Nodes,
			func(n kubestate.Node) bool { return n.Name == node.ValueString() })
		if left || !have.Kubernetes.Reachable {
			s.Keep("node_name")
		}
	}

	if member, ok := s.prior["member_id"].(types.String); ok && !member.IsNull() {
		left := slices.ContainsFunc(have.Etcd.Members,
			func(e etcdstate.Member) bool { return e.ID == member.ValueString() })
		if left || !have.Etcd.Known {
			s.Keep("member_id")
		}
	}
}

// componentMap is texts by component as state has them; null when nobody knows.
func componentMap[M ~map[kubenames.Component]string](m M) types.Map {
	if m == nil {
		return types.MapNull(types.StringType)
	}

	values := map[string]attr.Value{}
	for c, text := range m {
		values[string(c)] = types.StringValue(text)
	}

	return types.MapValueMust(types.StringType, values)
}

// byComponent reads what componentMap wrote; nil for null.
func byComponent(m types.Map) map[kubenames.Component]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}

	texts := map[kubenames.Component]string{}

	for c, value := range m.Elements() {
		if text, ok := value.(types.String); ok {
			texts[kubenames.Component(c)] = text.ValueString()
		}
	}

	return texts
}

// withDrift puts drift into what was observed of machines that answered.
func withDrift(observed types.Map, drift map[string]machineset.Drift) types.Map {
	values := observed.Elements()

	for name, differences := range drift {
		if record, seen := values[name]; seen {
			values[name] = WithValue(record, "drift", tf.TextList(differences.Lines()))
		}
	}

	return types.MapValueMust(ObservedType(), values)
}

// driftIn is the drift in a record, by machine.
func driftIn(ctx context.Context, record types.Map) map[string]machineset.Drift {
	drift := map[string]machineset.Drift{}

	for name, o := range tf.Objects[observedModel](ctx, &tf.Reader{}, record) {
		drift[name] = o.drift()
	}

	return drift
}

func (o observedModel) drift() machineset.Drift {
	lines, _ := tf.KnownStrings(o.Drift)

	return machineset.ReadDrift(lines)
}
