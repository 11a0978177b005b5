package lifecycle_test

import (
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// Machines that take connections before they answer are noticed on later connections. The first ones, which are never
// answered, last longer than the run.
func TestCreate_ofMachinesThatTakeConnectionsFirst(t *testing.T) {
	t.Parallel()

	delays := timing.TestDelays()
	delays.Mute = 200 * time.Millisecond

	s := newSite(t, 1, 1, sim.Options{Delays: &delays})
	s.timeouts = talos.Timeouts{
		Connect: time.Hour, Observe: time.Hour, Settle: time.Hour, Silence: 50 * time.Millisecond,
	}
	s.create()
	s.settled()
}
