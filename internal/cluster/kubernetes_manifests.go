package cluster

import "cmp"

// manifestsLeft reports whether the manifests of the version that is being reached have to be
// synced: where every API server has it, and no component a newer one, so that what the
// control planes render is that version's. The last control plane to get there syncs.
func (u kubernetesUpgrade) manifestsLeft() bool {
	synced := cmp.Or(u.have.Kubernetes.Manifests, u.want.Kubernetes.Manifests)

	if !u.want.OwnsControlPlane() || synced == "" || synced == u.target {
		return false
	}

	if !u.final && minorsBetween(synced, u.target) <= 0 {
		return false
	}

	for _, m := range u.want.sorted(ControlPlane) {
		version, known := u.version(m, KubeAPIServer)
		if known && minorsBetween(version, u.target) != 0 {
			return false
		}
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if api, known := ImageVersion(node.StaticPods[string(KubeAPIServer)].Image); known && minorsBetween(api, u.target) > 0 {
			return false
		}
	}

	return true
}

// sync brings the bootstrap manifests of a control plane to the cluster.
func (u kubernetesUpgrade) sync(d *Decision) {
	if !u.manifestsLeft() {
		return
	}

	if !u.have.Kubernetes.Reachable {
		d.hold("", "the bootstrap manifests of Kubernetes %s wait for the Kubernetes API%s", u.target, because(u.have.Kubernetes.Cause))

		return
	}

	step := SyncManifests{Version: u.target}

	for _, m := range u.want.sorted(ControlPlane) {
		s := u.have.Machines[m.Name]
		if s.Access != Member {
			continue
		}

		if s.Busy != "" {
			return
		}

		if step.Machine == "" {
			step.Machine = m.Name
		}

		if step.TalosVersion == "" || older(s.TalosVersion, step.TalosVersion) {
			step.TalosVersion = s.TalosVersion
		}
	}

	if step.Machine != "" {
		d.step(step)
	}
}
