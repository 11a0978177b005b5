package machines_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A second state with the same secrets takes over one of three control planes. When the first state is destroyed,
// its two machines leave etcd before they are reset. The third one, which it no longer owns, keeps its etcd and its
// quorum.
func TestControlPlane_destroyLeavesAPartThatWasTakenOver(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := sitetest.New(t, 3, 0)
	first, second := tftest.Drive(t, thePlaneKind, nil), tftest.Drive(t, thePlaneKind, nil)

	first.Apply(t, allowing(planeOfSite(s, secrets, s.ControlPlane...))).Must(t)
	tftest.Must(t, s.ControlPlane[0].PutEtcdKeys(t.Context(), map[string]string{identityKey: "the same"}))
	second.Apply(t, planeOfSite(s, secrets, s.ControlPlane[0])).Must(t)
	s.ForgetCalls()

	first.Apply(t, nil).Must(t)

	if calls := s.CallsTo("EtcdLeaveCluster"); len(calls) != 2 {
		t.Errorf("%d machines left etcd in order", len(calls))
	}

	members, err := s.EtcdMembers(t.Context())
	tftest.Must(t, err)

	if keys, err := s.ControlPlane[0].EtcdKeys(t.Context(), identityKey); err != nil || keys[identityKey] != "the same" ||
		!slices.Equal(members, []string{s.ControlPlane[0].Hostname()}) {
		t.Errorf("etcd has %v and %v: %v", members, keys, err)
	}

	second.ExpectEmpty(t, "after the destroy of the other state", planeOfSite(s, secrets, s.ControlPlane[0]))
}
