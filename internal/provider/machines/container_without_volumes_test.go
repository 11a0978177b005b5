package machines_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Without volumes a removed pod loses its machine's data, and the next one joins again.
func TestContainer_withoutVolumesJoinsAgain(t *testing.T) {
	testenv.BeforeRelease(t, "TestContainer_allDataInItsPod", "TestVolumes_ephemeralOnesGoWithThePod")
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := tftest.With(s.cluster("fleeting", tftest.NewBundle(t), 3, 1), tftest.Config{"ephemeral": true}, "host",
		"pod", "storage")

	d.Ready(t, config)

	if claims := s.claimUIDs(t); len(claims) > 0 {
		t.Errorf("there are volumes: %v", claims)
	}

	for _, pod := range []string{"fleeting-cp-0-0", "fleeting-batch-0-0"} {
		tftest.Must(t, s.KillPod(t.Context(), s.namespace, pod))
		tftest.Must(t, s.Machine(s.namespace, pod).AwaitStage(t.Context(), sim.StageMaintenance))
	}

	d.Refresh(t).Must(t)
	d.Ready(t, config)
	d.ExpectEmpty(t, "after pods were killed", config)
	s.expectEtcd(t, "fleeting", 3)
	s.destroy(t, d, "fleeting")
}
