package provider

import (
	"slices"
	"testing"
)

// A second state with the same secrets takes over one of three control planes. When the first state is destroyed, its two
// machines leave etcd before they are reset: the third one, which is not its own any more, keeps its etcd and its quorum.
func TestControlPlane_destroyLeavesAPartThatWasTakenOver(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := newSite(t, 3, 0)
	first, second := drive(t, thePlaneKind, nil), drive(t, thePlaneKind, nil)

	first.apply(t, allowing(s.planeOf(secrets, s.controlPlane...))).must(t)
	must(t, s.controlPlane[0].PutEtcdKeys(t.Context(), map[string]string{identityKey: "the same"}))
	second.apply(t, s.planeOf(secrets, s.controlPlane[0])).must(t)
	s.ForgetCalls()

	first.apply(t, nil).must(t)

	if calls := s.CallsTo("EtcdLeaveCluster"); len(calls) != 2 {
		t.Errorf("%d machines left etcd in order", len(calls))
	}

	members, err := s.EtcdMembers(t.Context())
	must(t, err)

	if keys, err := s.controlPlane[0].EtcdKeys(t.Context(), identityKey); err != nil || keys[identityKey] != "the same" ||
		!slices.Equal(members, []string{s.controlPlane[0].Hostname()}) {
		t.Errorf("etcd has %v and %v: %v", members, keys, err)
	}

	second.expectEmpty(t, "after the destroy of the other state", s.planeOf(secrets, s.controlPlane[0]))
}
