package cluster

// LivesOn reports whether a cluster lives on without the control planes in going.Removed: etcd has other members, or
// Kubernetes other control planes. Control planes of another resource count as others even if going lists them,
// because they stay.
func LivesOn(going Spec, have Snapshot) bool {
	known := going.OtherControlPlanes
	rest := going.Ordered().withoutOthers(have)

	if OthersInEtcd(rest, have) {
		return true
	}

	rest.OtherControlPlanes, rest.order = known, nil

	return len(OtherNodesAtWork(rest, have)) > 0
}
