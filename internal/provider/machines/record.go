package machines

import (
	"cmp"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// What a run leaves in state. The record decides what the next run may do: its UUIDs identify the machines, and the
// phase says whether etcd may be bootstrapped.

// phase is the phase of the machines after the run. A successful run is Ready, if the endpoint answers. A failed one
// leaves a Ready cluster Ready if it changed nothing, so that a postcondition does not repeat its error. A
// cluster that had an etcd never returns to a phase without one, or it would be bootstrapped again.
func (r run) phase(before cluster.Phase) cluster.Phase {
	switch {
	case r.err == nil && health.SilentEndpoint(r.want, r.result.Snapshot):
		return cluster.Degraded
	case r.err == nil:
		return cluster.Ready
	}

	switch {
	case before == cluster.Ready && r.unharmed():
		return cluster.Ready
	case before == cluster.Ready || before == cluster.Degraded:
		return cluster.Degraded
	}

	phase := cluster.PhaseOf(r.want, r.result.Snapshot)
	if phase == cluster.Ready || machineset.Bootstrapped(before) || r.sawEtcd() {
		return cluster.Joining
	}

	return phase
}

// unharmed reports whether a failed run changed nothing, and left its machines and their cluster healthy.
func (r run) unharmed() bool {
	have := r.result.Snapshot

	return r.began && len(r.result.Done) == 0 && cluster.PhaseOf(r.want, have) == cluster.Ready &&
		len(health.TroublesOf(r.want, have)) == 0 && !health.SilentEndpoint(r.want, have)
}

// sawEtcd reports whether the run bootstrapped an etcd, or found a running one.
func (r run) sawEtcd() bool {
	have := r.result.Snapshot
	if len(have.Etcd.Members) > 0 {
		return true
	}

	for _, m := range have.Machines {
		if m.BootstrapRequested || m.EtcdService == step.ServiceRunning {
			return true
		}
	}

	return slices.ContainsFunc(r.result.Done, func(s step.Step) bool {
		return step.BeginsEtcd(s)
	})
}

// sent is the configurations that the run sent, by machine.
func (r run) sent() map[string]step.ApplyConfig {
	sent := map[string]step.ApplyConfig{}

	for _, op := range r.result.Done {
		if s, ok := op.(step.ApplyConfig); ok {
			sent[s.Machine] = s
		}
	}

	return sent
}

// observed is the record of the machines after the run. A machine that got its configuration and is not back yet is
// recorded with what is known of it: it holds secrets of the cluster and joins it by itself.
func (r run) observed() record.Machines {
	seen := observed(r.want, r.result.Snapshot, r.Seen)

	for name, step := range r.sent() {
		if state := r.result.Snapshot.Machines[name]; !state.Answers() && step.Staged == "" {
			seen[name] = configured(step, state, seen[name], r.addressOf(name))
		}
	}

	for name, digest := range r.Pods {
		seen.Change(name, func(m *record.Machine) { m.PodDigest = digest })
	}

	for name, peer := range r.Peers {
		seen.Change(name, func(m *record.Machine) { m.PeerAddress = peer })
	}

	for name, link := range r.Links {
		seen.Change(name, func(m *record.Machine) { m.Link = link })
	}

	for name, image := range step.TotalOf(r.result.Done).Installers {
		seen.Change(name, func(m *record.Machine) { m.Installer = image })
	}

	for _, m := range r.want.Removed {
		if r.err == nil || r.finished(m) {
			delete(seen, m.Name)
		}
	}

	return seen
}

// manifests is the Kubernetes version of the cluster's bootstrap manifests after the run, as far as this resource is
// responsible. A successful run has synced them, or left that to the resource with the last API server. A new
// control plane applies its own (Talos 1.13, k8s/manifest_apply.go), and changes no existing ones.
func (r run) manifests(before types.String) types.String {
	wanted := tf.TextOrNull(r.want.Kubernetes.Version)

	switch synced := manifestsSeen(r.want, r.result.Snapshot, before); {
	case !r.want.OwnsControlPlane():
		return types.StringNull()
	case r.err == nil && !wanted.IsNull():
		return wanted
	case !synced.IsNull():
		return synced
	}

	for _, op := range r.result.Done {
		if s, ok := op.(step.UpgradeComponent); ok && s.Component == kubenames.KubeAPIServer {
			if from, known := kubenames.ImageVersion(s.From); known {
				return types.StringValue(from) // it was there before this run
			}
		}
	}

	return wanted
}

// manifestsSeen is the Kubernetes version of the last synced bootstrap manifests, as far as a snapshot shows it;
// otherwise it is unchanged.
func manifestsSeen(want cluster.Spec, have cluster.Snapshot, before types.String) types.String {
	if !want.OwnsControlPlane() || have.Kubernetes.Manifests == "" {
		return before
	}

	return types.StringValue(have.Kubernetes.Manifests)
}

// addressOf is the address of a machine of the run.
func (r run) addressOf(name string) string {
	for _, m := range r.want.Machines {
		if m.Name == name {
			return m.Address
		}
	}

	return ""
}

// configured describes a machine that was not observed after it got its configuration.
func configured(sent step.ApplyConfig, s step.MachineState, last record.Machine, address string) record.Machine {
	last.Address, last.Drift = address, nil
	last.Stage, last.Ready = cmp.Or(s.Stage, step.StageUnknown), false
	last.ConfigDigest, last.Keys = sent.Digest, sent.Keys
	last.UUID = cmp.Or(s.UUID, last.UUID)

	return last
}
