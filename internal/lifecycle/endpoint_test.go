package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A silent endpoint is not an error of a run whose machines are Ready, and the run ends.
func TestConverge_recordsASilentEndpoint(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.policy.EndpointTimeout = 0

	if err := s.sim.DropEndpoint(s.want.Endpoint); err != nil {
		t.Fatal(err)
	}

	result, err := s.runner().Converge(bounded(t), s.want)
	if got := result.Snapshot.Kubernetes.Endpoint; err != nil || !got.Silent() || got.URL != s.want.Endpoint {
		t.Errorf("the run ends with %v and the endpoint %+v", err, got)
	}
}

// The run waits for a load balancer that starts after the machines.
func TestConverge_waitsForALateEndpoint(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.policy.EndpointTimeout = 5 * time.Minute

	if err := s.sim.DropEndpoint(s.want.Endpoint); err != nil {
		t.Fatal(err)
	}

	r, silent := s.runner(), 0
	tell := r.Events
	r.Events = func(e lifecycle.Event) {
		tell(e)

		if strings.HasPrefix(e.Reason, "the endpoint ") {
			silent++

			if err := s.sim.RestoreEndpoint(s.want.Endpoint); err != nil {
				t.Error(err)
			}
		}
	}

	result, err := r.Converge(bounded(t), s.want)
	if got := result.Snapshot.Kubernetes.Endpoint; err != nil || !got.Asked || got.Silent() || silent != 1 {
		t.Errorf("the run ends with %v and the endpoint %+v, after %d words of it", err, got, silent)
	}
}
