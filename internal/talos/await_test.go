package talos_test

import (
	"context"
	"errors"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// awaiting begins to wait for a change after a machine's last status.
func awaiting(t *testing.T, api *talos.Machine, last step.MachineState) <-chan error {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
	t.Cleanup(cancel)

	ended := make(chan error, 1)
	go func() { ended <- api.Await(ctx, last) }()

	return ended
}

// A machine is heard when its connection ends, when it takes connections again, and when it is in another stage.
func TestAwait_untilTheMachineIsAnotherWay(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, _ := waiting(t, simulator, o, o.fleet(t, nil))

	last := api.Observe(t.Context())
	goes := awaiting(t, api, last)

	m.PowerOff()
	must(t, <-goes)

	gone := observed(t, api, "is gone", func(s step.MachineState) bool { return s.Access == step.Unreachable })
	returns := awaiting(t, api, gone)

	m.PowerOn()
	must(t, <-returns)

	boots := observed(t, api, "answers", func(s step.MachineState) bool { return s.Access == step.Member })

	boots.Stage = step.StageShuttingDown // as if it had said that before
	must(t, <-awaiting(t, api, boots))
}

// A change without an event has to be requested; and the end of the context ends the wait.
func TestAwait_isCutOff(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, _ := waiting(t, simulator, o, o.fleet(t, nil))
	last := api.Observe(t.Context())

	for name, state := range map[string]step.MachineState{
		"a member": last, "one that is silent": {Access: step.Unreachable},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		if err := api.Await(ctx, state); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
	}

	behind := wanted(m)
	behind.Through = true

	for name, api := range map[string]func() error{
		"behind a control plane": func() error { return o.fleet(t, nil).Machine(behind).Await(t.Context(), last) },
		"another cluster's": func() error {
			return api.Await(t.Context(), step.MachineState{Access: step.Foreign})
		},
	} {
		if err := api(); err == nil {
			t.Errorf("%s is awaited", name)
		}
	}
}
