package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// A refresh finds machines of a run that was killed and whose state is lost. It reports them, so that a plan
// includes them, and the apply removes them one by one.
func TestContainer_orphansAreRemoved(t *testing.T) {
	testenv.BeforeRelease(t, "TestContainer_orphansGoWithTheirCluster", "TestObserve_orphans")
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	secrets := tftest.NewBundle(t)
	small := s.cluster("stray", secrets, 1, 1)

	d.Ready(t, small)

	for _, test := range []struct {
		what  string
		stray func()
	}{
		{"never got a configuration", func() { s.makeAndForget(t, d, s.cluster("stray", secrets, 3, 3)) }},
		{"are members", func() { known := d.State; d.Ready(t, s.cluster("stray", secrets, 3, 2)); d.State = known }},
	} {
		test.stray()

		operations := operationsIn(t, d.RefreshedPlan(t, small))
		for _, name := range []string{"cp-1", "cp-2", "batch/1"} {
			if !strings.Contains(operations, name) {
				t.Errorf("of %s that %s the plan says nothing:\n%s", name, test.what, operations)
			}
		}

		d.Ready(t, small)
		d.ExpectEmpty(t, "after orphans left that "+test.what, small)

		if got := strings.Join(s.pods(t, workload.LabelCluster+"=stray"), " "); got != "stray-batch-0-0 stray-cp-0-0" {
			t.Errorf("of orphans that %s there are left: %s", test.what, got)
		}

		s.expectEtcd(t, "stray", 1)
	}

	s.destroy(t, d, "stray")
}

// Machines that no state knows are removed with the cluster, even without a refresh before its end.
func TestContainer_orphansGoWithTheirCluster(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	secrets := tftest.NewBundle(t)

	d.Ready(t, s.cluster("left", secrets, 1, 1))
	s.makeAndForget(t, d, s.cluster("left", secrets, 3, 2))
	s.destroy(t, d, "left")
}

// makeAndForget starts an update, and kills it when its machines exist on the host; its state is lost.
func (s *hostSite) makeAndForget(t *testing.T, d *tftest.Driven, config tftest.Config) {
	t.Helper()

	s.dies(t, d, 2, true, config) // after Check and Ensure
}
