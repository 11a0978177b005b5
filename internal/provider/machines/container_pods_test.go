package machines_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Pods die while a cluster grows, is upgraded and shrinks, in the middle of steps. That run or the next one
// finishes, and etcd is one cluster of the present machines.
func TestContainer_podsDieDuringSteps(t *testing.T) {
	testenv.BeforeRelease(t, "TestContainerCluster_lifecycle", "TestContainer_survivesKilledRuns")
	t.Parallel()

	s := newHostSite(t)
	m := momentsOf(t, s)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("dying", tftest.NewBundle(t), 1, 1)

	d.Ready(t, config)

	for _, change := range []struct {
		what   string
		Value  any
		At     []string
		planes int
		// moment is when the pods die.
		moment string
		pods   []string
	}{
		{"the first one, while others join", 3, []string{"control_plane", "replicas"}, 3,
			"talos dying-cp-1-0 ApplyConfiguration", []string{"dying-cp-0-0"}},
		{"the one that is upgraded, and a worker", "v1.13.1", []string{"talos_version"}, 3, "host Replace cp-1",
			[]string{"dying-cp-1-0", "dying-batch-0-0"}},
		{"another one than the one that is upgraded", "v1.13.2", []string{"talos_version"}, 3, "host Replace cp-0",
			[]string{"dying-cp-2-0"}},
		{"one that stays, while another one goes", 1, []string{"control_plane", "replicas"}, 1, "host Remove cp-2",
			[]string{"dying-cp-0-0"}},
	} {
		config = tftest.With(config, change.Value, change.At...)

		died := s.killAt(t, m, change.moment, change.pods...)

		done := d.Apply(t, config)
		if !died() {
			t.Fatalf("%s: there was no %q in %v", change.what, change.moment, m.with(""))
		}

		if done.Failed() || tftest.Text(t, d.State, "phase") != "Ready" {
			t.Logf("%s: the run did not finish: %s", change.what, tftest.Show(done.Diagnostics))
			d.Refresh(t).Must(t)
			d.Ready(t, config)
		}

		s.expectEtcd(t, "dying", change.planes)
		d.ExpectEmpty(t, change.what, config)
	}

	s.destroy(t, d, "dying")
}

// killAt kills pods at the first moment with a prefix, and reports whether there was one.
func (s *hostSite) killAt(t *testing.T, m *moments, moment string, pods ...string) (died func() bool) {
	t.Helper()

	var once sync.Once

	happened := false

	m.listen(func(now string) {
		if !strings.HasPrefix(now, moment) {
			return
		}

		once.Do(func() {
			happened = true

			for _, pod := range pods {
				if err := s.KillPod(t.Context(), s.namespace, pod); err != nil {
					t.Errorf("kill %s at %q: %v", pod, now, err)
				}
			}
		})
	})

	return func() bool {
		m.Mu.Lock()
		defer m.Mu.Unlock()

		return happened
	}
}
