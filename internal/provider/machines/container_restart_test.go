package machines_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// A rolling restart of machines in pods restarts every one of them. Talos 1.13 exits for it, and a pod with Talos 1.14
// is replaced.
func TestContainerRestart_everyMachine(t *testing.T) {
	t.Parallel()

	versions := []string{"v1.14.1"}
	if testenv.Everything() {
		versions = append(versions, "v1.13.0")
	}

	for _, talos := range versions {
		t.Run(talos, func(t *testing.T) {
			t.Parallel()

			s := newHostSite(t)
			d := s.drive(t, "talosop_cluster")
			config := tftest.With(s.cluster("dev", tftest.NewBundle(t), 3, 1), talos, "talos_version")
			d.Ready(t, config)

			before := s.containers(t)
			restart := tftest.Drive(t, "talosop_rolling_restart", nil)
			restart.Server = d.Server
			restart.Apply(t, tftest.Config{"cluster": tftest.AttributeOf(t, d.State, "cluster")}).Must(t)

			after := s.containers(t)
			for pod, container := range before {
				if after[pod] == "" || after[pod] == container {
					t.Errorf("%s did not restart: %v, were %v", pod, after, before)
				}
			}

			d.ExpectEmpty(t, "after the restart", config)
		})
	}
}
