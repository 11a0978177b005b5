package lifecycle_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// slimKubelets sets another image of the same version for all kubelets.
const slimKubelets = `
machine: {kubelet: {image: "ghcr.io/siderolabs/kubelet:v1.35.4-slim"}}
`

// TestKubernetesUpgrade_ofKubeletsOfTheSameVersion: the cluster does not distinguish the images. Still, a kubelet
// that does not start with the new image stops the change at its machine, in the run that set the image and in the
// next one.
func TestKubernetesUpgrade_ofKubeletsOfTheSameVersion(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 2, sim.Options{})
	s.timeouts = talos.Timeouts{Kubelet: 2 * time.Second}
	s.kubernetesWith("v1.35.4", "", "")
	s.create()
	s.kubernetesWith("v1.35.4", slimKubelets, "")
	s.sim.Machine("w-1").BreakComponent("kubelet", "v1.35.4")

	// The events in which the first run meets the broken kubelet, and the second one what is left of it.
	for run, met := range []func(e lifecycle.Event) bool{
		func(e lifecycle.Event) bool {
			return e.State == lifecycle.StepFailed && strings.HasPrefix(e.Step.String(), "change the image of kubelet on w-1")
		},
		func(e lifecycle.Event) bool {
			return e.State == lifecycle.Waiting && e.Machine == "w-1" && strings.HasPrefix(e.Reason, "its node")
		},
	} {
		_, err := s.convergeUntil(met)

		var incomplete *lifecycle.IncompleteError
		if !errors.As(err, &incomplete) {
			t.Fatalf("run %d ended with %v, and a kubelet does not run", run+1, err)
		}

		for _, op := range incomplete.Done {
			if c, ok := op.(step.UpgradeComponent); ok && c.On() == "w-1" {
				t.Errorf("run %d took this for done: %s", run+1, op)
			}
		}

		have := s.runner().Observe(bounded(t), s.want)

		for machine, slim := range map[string]bool{"cp-1": true, "w-1": true, "w-2": false} {
			if image := have.Machines[machine].Images[kubenames.Kubelet]; strings.HasSuffix(image, "-slim") != slim {
				t.Errorf("after run %d %s has %s: %v", run+1, machine, image, err)
			}
		}
	}

	s.sim.Machine("w-1").RepairComponent("kubelet", "v1.35.4")
	s.timeouts = talos.Timeouts{}
	s.converge()
	s.runsKubernetes("v1.35.4")
	s.settled()
}
