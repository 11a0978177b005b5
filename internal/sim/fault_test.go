package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

func newMaintenanceMachine(t *testing.T, opts sim.Options) (*sim.Simulator, *sim.Machine, *client.Client) {
	t.Helper()

	simulator := sim.ForTest(t, opts)
	m := addMachines(t, simulator, "cp", 1)[0]

	return simulator, m, insecure(t, m)
}

func TestFault_hitsTheCallsItNames(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault.Fault
		want  []codes.Code
	}{
		"first call once": {fault.Fault{Method: "Version", Code: codes.Internal},
			[]codes.Code{codes.Internal, codes.OK, codes.OK}},
		"second call": {fault.Fault{Method: "version", From: 2, Code: codes.Internal},
			[]codes.Code{codes.OK, codes.Internal, codes.OK}},
		"two calls": {fault.Fault{Count: 2, Code: codes.Aborted},
			[]codes.Code{codes.Aborted, codes.Aborted, codes.OK}},
		"all that follow": {fault.Fault{Method: "*", From: 2, Count: -1, Code: codes.Aborted},
			[]codes.Code{codes.OK, codes.Aborted, codes.Aborted}},
		"another method": {fault.Fault{Method: "Bootstrap", Code: codes.Internal},
			[]codes.Code{codes.OK, codes.OK, codes.OK}},
		"for a while": {fault.Fault{For: time.Hour, Code: codes.Unavailable},
			[]codes.Code{codes.Unavailable, codes.Unavailable, codes.Unavailable}},
		"latency only":     {fault.Fault{Latency: time.Millisecond}, []codes.Code{codes.OK, codes.OK, codes.OK}},
		"connection cut":   {fault.Fault{Cut: true}, []codes.Code{codes.Unavailable, codes.OK, codes.OK}},
		"response dropped": {fault.Fault{DropResponse: true}, []codes.Code{codes.Unavailable, codes.OK, codes.OK}},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, talos := newMaintenanceMachine(t, sim.Options{})
			m.SetFault(test.fault)

			var got []codes.Code

			for range test.want {
				_, err := talos.Version(within(t, time.Minute))
				got = append(got, status.Code(err))
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFault_droppedResponseHasItsEffect(t *testing.T) {
	simulator, m, talos := newMaintenanceMachine(t, sim.Options{})
	cluster := newTestCluster(t, simulator)
	m.SetFault(fault.Fault{Method: "ApplyConfiguration", DropResponse: true})

	_, err := talos.ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
		Data: cluster.config(machinetype.TypeControlPlane), Mode: machine.ApplyConfigurationRequest_AUTO,
	})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want a cut connection", err)
	}

	cluster.bootstrap(m)
	check(t, m.AwaitReady(within(t, time.Minute)))
}

func TestFault_crashAndHangKeepTheMachineAway(t *testing.T) {
	simulator, m, talos := newMaintenanceMachine(t, sim.Options{})
	cluster := newTestCluster(t, simulator)

	m.SetFault(fault.Fault{Method: "Version", Crash: true})

	if _, err := talos.Version(within(t, time.Minute)); status.Code(err) != codes.Unavailable {
		t.Errorf("version of a crashing machine: %v", err)
	}

	check(t, m.AwaitStage(within(t, time.Minute), sim.StageUnknown))
	m.PowerOn()
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	m.HangNextReboot()
	cluster.apply(m, machinetype.TypeControlPlane)
	eventually(t, "the machine to be gone", func(context.Context) error {
		if !m.Installed() || m.BootID() != "" {
			return errors.New("still there")
		}

		return nil
	})

	m.PowerOff()
	m.PowerOn()
	cluster.bootstrap(m)
	check(t, m.AwaitReady(within(t, time.Minute)))
}

// A client that notices a crash by its failed call may switch the machine on again while it still goes down.
func TestPowerOn_duringACrash(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]

	for boots := range 20 {
		m.SetFault(fault.Fault{Method: "Version", Crash: true})

		if _, err := insecure(t, m).Version(within(t, time.Minute)); status.Code(err) != codes.Unavailable {
			t.Errorf("version of a crashing machine: %v", err)
		}

		m.ClearFaults()
		m.PowerOn()
		check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

		if _, err := insecure(t, m).Version(within(t, time.Minute)); err != nil || m.Boots() != boots+2 {
			t.Fatalf("version in boot %d: %v", m.Boots(), err)
		}
	}

	m.PowerOff()
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageUnknown))
}

// Power-off does not wait for a silent connection: gRPC gives it two minutes for the handshake.
func TestPowerOff_waitsForNoHandshake(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageMaintenance))

	for range 3 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", m.Endpoint())
		check(t, err)
		t.Cleanup(func() { check(t, conn.Close()) })
	}

	// The connections are taken in their order: an answer on a later one means that the server has them.
	if _, err := insecure(t, m).Version(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}

	off := make(chan struct{})

	go func() {
		defer close(off)
		m.PowerOff()
	}()

	select {
	case <-off:
	case <-within(t, 12*time.Second).Done():
		t.Fatal("the machine did not go down while a client said nothing")
	}
}

func TestOnCall_decidesBeforeACallIsServed(t *testing.T) {
	simulator, m, talos := newMaintenanceMachine(t, sim.Options{})
	simulator.SetOnCall(func(c fault.Call) error {
		if c.Mutates() {
			return status.Error(codes.Aborted, "not today")
		}

		return nil
	})

	_, err := talos.ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
		Data: newTestCluster(t, simulator).config(machinetype.TypeWorker), Mode: machine.ApplyConfigurationRequest_AUTO,
	})
	if status.Code(err) != codes.Aborted || m.Stage() != sim.StageMaintenance {
		t.Errorf("got %v in stage %s, want Aborted in maintenance", err, m.Stage())
	}

	if _, err := talos.Version(t.Context()); err != nil {
		t.Error(err)
	}

	var got []string
	for _, c := range simulator.Calls() {
		got = append(got, fmt.Sprint(c.Seq, " ", c))
	}

	want := []string{
		"1 cp-1 ApplyConfiguration auto (maintenance) Aborted",
		"2 cp-1 Version (maintenance) OK",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestClose_leavesNothing looks at the stacks of all goroutines, because a count
// would also count those of clients and of other tests.
func TestClose_leavesNothing(t *testing.T) {
	simulator, err := sim.New(t.Context(), sim.Options{})
	check(t, err)

	cps, workers := addMachines(t, simulator, "cp", 3), addMachines(t, simulator, "worker", 1)
	newTestCluster(t, simulator).create(cps, workers)
	workers[0].PowerOff()
	check(t, simulator.Close())
	check(t, simulator.Close())

	ours := regexp.MustCompile(`internal/sim(/[a-z]+)?\.\(\*`)

	eventually(t, "goroutines of the site to end", func(context.Context) error {
		stacks := make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]

		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if ours.MatchString(stack) {
				return errors.New(stack)
			}
		}

		return nil
	})
}
