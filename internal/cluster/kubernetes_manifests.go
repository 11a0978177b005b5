package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// manifestsLeft reports whether the manifests of the current target version must be synced. Every API server must
// have that version and no component a newer one, so that the control planes render its manifests. The last control
// plane that gets there syncs.
func (u kubernetesUpgrade) manifestsLeft() bool {
	synced := cmp.Or(u.have.Kubernetes.Manifests, u.want.Kubernetes.Manifests)

	behind := synced != "" && synced != u.target && (u.final || versions.MinorsBetween(synced, u.target) > 0)

	if !u.want.OwnsControlPlane() || !behind && !u.proxyStale() && !u.sourcesChanged() {
		return false
	}

	for _, m := range u.want.sorted(step.ControlPlane) {
		version, known := u.version(m, kubenames.KubeAPIServer)
		if known && versions.MinorsBetween(version, u.target) != 0 {
			return false
		}
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if api, known := node.APIServer(); known && versions.MinorsBetween(api, u.target) > 0 {
			return false
		}
	}

	return true
}

// proxyStale reports whether kube-proxy runs with another image than the control planes' configurations have. Only
// the manifests change it.
func (u kubernetesUpgrade) proxyStale() bool {
	running := u.have.Kubernetes.KubeProxy

	return u.final && running != "" && slices.ContainsFunc(u.want.sorted(step.ControlPlane), func(m Machine) bool {
		image := u.image(m, kubenames.KubeProxy)

		return image != "" && image == u.has(m, kubenames.KubeProxy) && image != running
	})
}

// sourcesChanged reports whether the sources of the manifests differ from those of the cluster's manifests. Talos
// creates missing objects by itself, but changes and deletes nothing (Talos 1.13, k8s/manifest_apply.go).
func (u kubernetesUpgrade) sourcesChanged() bool {
	return u.final && len(u.want.Kubernetes.Changed) > 0 && u.have.Kubernetes.Manifests != u.target &&
		slices.ContainsFunc(u.want.sorted(step.ControlPlane), u.configured)
}

// configured reports whether a machine has the wanted configuration, which a locked one need not have.
func (u kubernetesUpgrade) configured(m Machine) bool {
	s := u.have.Machines[m.Name]

	return s.Access == step.Member && s.ConfigDigest == m.ConfigDigest
}

// sync applies the bootstrap manifests of a control plane.
func (u kubernetesUpgrade) sync(d *Decision) {
	if !u.manifestsLeft() {
		return
	}

	if !u.have.Kubernetes.Reachable {
		d.hold("", "the bootstrap manifests of Kubernetes %s wait for the Kubernetes API%s", u.target,
			Because(u.have.Kubernetes.Cause))

		return
	}

	op := step.SyncManifests{Version: u.target, TalosVersion: OldestTalos(u.want, u.have), Keep: u.policy.KeepManifests}
	changed := u.sourcesChanged()

	if changed {
		op.Changes = strings.Join(u.want.Kubernetes.Changed, "; ")
	}

	for _, m := range u.want.sorted(step.ControlPlane) {
		s := u.have.Machines[m.Name]
		if s.Access != step.Member {
			continue
		}

		if s.Busy != "" {
			return
		}

		// A booting machine has not rendered everything yet, and what is missing is pruned.
		if reason := outOfService(u.want, u.have, m); reason != "" {
			d.hold(m.Name, "the bootstrap manifests of Kubernetes %s wait: it %s", u.target, reason)

			return
		}

		if op.Machine == "" && (!changed || u.configured(m)) {
			op.Machine = m.Name
		}
	}

	if op.Machine != "" {
		d.step(op)
	}
}

// OldestTalos is the oldest Talos version of the control planes.
func OldestTalos(want Spec, have Snapshot) string {
	version := ""

	for _, m := range want.controlPlanes() {
		version = versions.Oldest(version, have.Machines[m.Name].TalosVersion)
	}

	for _, s := range have.Peers {
		version = versions.Oldest(version, s.TalosVersion)
	}

	return version
}
