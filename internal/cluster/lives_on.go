package cluster

// LivesOn reports whether a cluster lives on without the control planes in going.Removed: etcd has other members, or
// Kubernetes other control planes. Those that another resource owns are others, also where going lists them: they stay.
func LivesOn(going Spec, have Snapshot) bool {
	known := going.OtherControlPlanes
	rest := going.Ordered().withoutOthers(have)

	if OthersInEtcd(rest, have) {
		return true
	}

	rest.OtherControlPlanes, rest.order = known, nil

	return len(OtherNodesAtWork(rest, have)) > 0
}
