package talos_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/talossim"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

func TestReboot(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		fault     talossim.Fault
		first     error
		permanent bool
		calls     int
	}{
		"an answer":      {calls: 1},
		"a lost answer":  {fault: talossim.Fault{DropResponse: true}, calls: 1},
		"a lost request": {fault: talossim.Fault{Cut: true}, first: talos.ErrInProgress, calls: 2},
		"unavailable":    {fault: talossim.Fault{Code: codes.Unavailable}, first: talos.ErrUnreachable, calls: 2},
		"no role for it": {fault: talossim.Fault{Code: codes.PermissionDenied}, first: talos.ErrNotAuthorised, permanent: true, calls: 2},
		"no way to it":   {fault: talossim.Fault{Code: codes.FailedPrecondition}, first: talos.ErrUnsupported, permanent: true, calls: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sim := site(t, talossim.Options{})
			o := newOwner(t, sim)
			m, api, _ := waiting(t, sim, o, o.fleet(t, func(o *talos.Options) { o.Timeouts.Settle = 2 * time.Second }))
			boot := m.BootID()

			if test.fault != (talossim.Fault{}) {
				test.fault.Method = "Reboot"
				m.SetFault(test.fault)
			}

			err := api.Reboot(t.Context(), m.UUID())
			if !errors.Is(err, test.first) || wait.IsPermanent(err) != test.permanent {
				t.Fatalf("first attempt: %v, want %v", err, test.first)
			}

			if test.first != nil {
				must(t, api.Reboot(t.Context(), m.UUID()))
			}

			observed(t, api, "came back in another boot", func(s cluster.MachineState) bool {
				return waitsForBootstrap(s) && s.BootID != "" && s.BootID != boot && s.BootID == m.BootID()
			})

			if n := len(sim.CallsTo("Reboot")); n != test.calls {
				t.Errorf("%d calls, want %d", n, test.calls)
			}
		})
	}
}

// A machine on its way down is left to it, and one that is busy otherwise is not
// disturbed.
func TestRebootMeetsAnotherSequence(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		begin func(context.Context, *talos.Machine) error
		class error
	}{
		"a reboot": {begin: func(ctx context.Context, api *talos.Machine) error { return api.Reboot(ctx, "") }},
		"a reset":  {begin: func(ctx context.Context, api *talos.Machine) error { return api.Reset(ctx, false) }, class: talos.ErrInProgress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			delays := talossim.TestDelays()
			delays.Shutdown = time.Hour

			sim := site(t, talossim.Options{Delays: &delays})
			o := newOwner(t, sim)
			_, api, _ := waiting(t, sim, o, o.fleet(t, nil))

			must(t, test.begin(t.Context(), api))
			sim.ForgetCalls()

			if err := api.Reboot(t.Context(), ""); !errors.Is(err, test.class) || wait.IsPermanent(err) {
				t.Errorf("err = %v, want %v", err, test.class)
			}

			if n := len(sim.CallsTo("Reboot")); n != 0 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestContainersCannotRebootOrUpgrade(t *testing.T) {
	t.Parallel()

	api := waitingContainer(t)

	for what, err := range map[string]error{"reboot": api.Reboot(t.Context(), ""), "upgrade": api.Upgrade(t.Context(), newer, "", confirmed)} {
		if !errors.Is(err, talos.ErrUnsupported) || !wait.IsPermanent(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Nothing is sent to a machine with another hardware UUID than the one that was meant.
func TestChangesCompareTheUUID(t *testing.T) {
	t.Parallel()

	const another = "11111111-2222-3333-4444-555555555555"

	sim := site(t, talossim.Options{})
	o := newOwner(t, sim)
	m, own, config := waiting(t, sim, o, o.fleet(t, nil))

	mistaken := wanted(m)
	mistaken.UUID = another
	known := o.fleet(t, nil).Machine(mistaken)
	ctx := t.Context()

	sim.ForgetCalls()

	for what, err := range map[string]error{
		"try":     own.TryConfig(ctx, withSysctl(t, config), another, time.Minute),
		"stage":   own.StageConfig(ctx, config, another),
		"reboot":  own.Reboot(ctx, another),
		"upgrade": own.Upgrade(ctx, newer, another, confirmed),
		"leave":   own.LeaveEtcd(ctx, another),
		"pull":    known.PullImage(ctx, newer),
		"fetch":   known.PullComponent(ctx, cluster.Kubelet, newKubelet),
		"forfeit": known.ForfeitLeadership(ctx),
		"remove":  known.RemoveMember(ctx, "2ac1b0d0b83cb2a4"),
	} {
		if !errors.Is(err, talos.ErrForeign) || !wait.IsPermanent(err) {
			t.Errorf("%s: %v", what, err)
		}
	}

	for _, call := range sim.Calls() {
		if call.Mutates() {
			t.Errorf("the wrong machine was sent %s", call)
		}
	}
}
