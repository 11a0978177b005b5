package talos_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// kept is what the etcd of a snapshot of these tests holds.
var kept = map[string]string{"/test/a": strings.Repeat("a", 300<<10), "/test/b": "b"}

// lost is a control plane that waits for its bootstrap, and a snapshot of the etcd it had.
func lost(t *testing.T, simulator *sim.Simulator, change func(*talos.Options)) (*sim.Machine, *talos.Machine, []byte) {
	t.Helper()

	o := newOwner(t, simulator)
	m, former := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, former, "waited for its bootstrap", waitsForBootstrap)
	must(t, former.Bootstrap(t.Context()))
	observed(t, former, "became ready", settled)
	must(t, m.PutEtcdKeys(t.Context(), kept))

	var snapshot bytes.Buffer

	must(t, former.EtcdSnapshot(t.Context(), &snapshot))

	m.Wipe()
	m.PowerOn()

	api := o.fleet(t, change).Machine(wanted(m))
	observed(t, api, "was blank", func(s step.MachineState) bool { return s.Access == step.Maintenance })
	must(t, former.ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance, m.UUID()))
	observed(t, api, "waited again", waitsForBootstrap)
	simulator.ForgetCalls()

	return m, api, snapshot.Bytes()
}

// restoring is a Restore that reads the snapshot from its beginning each time.
func restoring(api *talos.Machine, snapshot []byte) func(context.Context) error {
	return func(ctx context.Context) error {
		return api.Restore(ctx, bytes.NewReader(snapshot), func(context.Context) error { return nil })
	}
}

func TestRestore_once(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		fault fault.Fault
		// first is the class of the first attempt's error.
		first               error
		uploads, bootstraps int
	}{
		"an answer": {uploads: 1, bootstraps: 1},
		"not ready": {
			fault: fault.Fault{Method: "EtcdRecover", Code: codes.FailedPrecondition,
				Message: "etcd service is not ready for recovery yet"},
			first: talos.ErrInProgress, uploads: 2, bootstraps: 1,
		},
		"an upload that is cut": {
			fault: fault.Fault{Method: "EtcdRecover", After: 200 << 10, Cut: true}, first: talos.ErrUnreachable, uploads: 2,
			bootstraps: 1,
		},
		"power that is cut in an upload": {
			fault: fault.Fault{Method: "EtcdRecover", After: 200 << 10, Crash: true}, first: talos.ErrUnreachable, uploads: 2,
			bootstraps: 1,
		},
		"an upload whose answer is lost": {
			fault: fault.Fault{Method: "EtcdRecover", DropResponse: true}, first: talos.ErrUnreachable, uploads: 2, bootstraps: 1,
		},
		"a bootstrap whose answer is lost": {
			fault: fault.Fault{Method: "Bootstrap", DropResponse: true}, uploads: 1, bootstraps: 1,
		},
		"a bootstrap that is lost": {
			fault: fault.Fault{Method: "Bootstrap", Cut: true}, first: talos.ErrUnreachable, uploads: 2, bootstraps: 2,
		},
		"no role for it": {
			fault: fault.Fault{Method: "EtcdRecover", Code: codes.PermissionDenied}, first: talos.ErrNotAuthorized, uploads: 2,
			bootstraps: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			m, api, snapshot := lost(t, simulator, shortlyUnless(test.first == nil))

			if test.fault.Method != "" {
				m.SetFault(test.fault)
			}

			err := restoring(api, snapshot)(t.Context())
			if !errors.Is(err, test.first) || err != nil && !strings.Contains(err.Error(), m.Address().String()) {
				t.Fatalf("first attempt: %v, want %v", err, test.first)
			}

			if test.fault.Crash {
				m.PowerOff() // waits for the end of the crash
				m.PowerOn()
			}

			m.ClearFaults()
			observed(t, api, "came back", func(s step.MachineState) bool {
				return s.Access == step.Member && (s.EtcdService != "" || settled(s))
			})

			// In every case, further attempts are harmless.
			for range 3 {
				must(t, retried(t, restoring(api, snapshot)))
			}

			observed(t, api, "became ready", settled)

			if got, err := m.EtcdKeys(t.Context(), "/test/"); err != nil || !maps.Equal(got, kept) {
				t.Errorf("etcd has %d keys, want those of the snapshot (%v)", len(got), err)
			}

			uploads, bootstraps := simulator.CallsTo("EtcdRecover"), simulator.CallsTo("Bootstrap")
			if len(uploads) != test.uploads || len(bootstraps) != test.bootstraps {
				t.Errorf("uploads %v and bootstraps %v, want %d and %d", uploads, bootstraps, test.uploads, test.bootstraps)
			}

			if slices.ContainsFunc(bootstraps, func(c fault.Call) bool { return c.Detail != "recover" }) {
				t.Errorf("a bootstrap without the snapshot: %v", bootstraps)
			}
		})
	}
}

// Nothing is bootstrapped unless the whole snapshot was sent.
func TestRestore_thatCannotReadTheSnapshot(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	_, api, snapshot := lost(t, simulator, nil)
	broken := errors.New("the disk is gone")

	for _, failure := range []error{broken, io.ErrUnexpectedEOF, fmt.Errorf("decrypt: %w", io.EOF)} {
		half := io.MultiReader(bytes.NewReader(snapshot[:len(snapshot)/2]), iotest.ErrReader(failure))
		if err := api.Restore(t.Context(), half, func(context.Context) error { return nil }); !errors.Is(err, failure) {
			t.Errorf("err = %v, want %v", err, failure)
		}
	}

	if n := len(simulator.CallsTo("Bootstrap")); n != 0 {
		t.Errorf("%d bootstraps", n)
	}

	must(t, retried(t, restoring(api, snapshot)))
}

// A machine that stops taking data is not waited for as long as the network would.
func TestRestore_onASilentMachine(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	m, api, snapshot := lost(t, simulator, func(o *talos.Options) { o.Timeouts.Stall = 200 * time.Millisecond })
	m.SetFault(fault.Fault{Method: "EtcdRecover", After: 100 << 10, Latency: time.Hour})

	err := restoring(api, snapshot)(t.Context())
	if !errors.Is(err, talos.ErrUnreachable) || !strings.Contains(err.Error(), "no data transferred for 200ms") {
		t.Errorf("err = %v", err)
	}

	if n := len(simulator.CallsTo("Bootstrap")); n != 0 {
		t.Errorf("%d bootstraps", n)
	}
}

// Talos reports the problem of a snapshot after it answered.
func TestRestore_ofABrokenSnapshot(t *testing.T) {
	t.Parallel()

	t.Run("its data is left", func(t *testing.T) {
		t.Parallel()

		_, api, snapshot := lost(t, site(t, sim.Options{}), nil)
		snapshot[len(snapshot)-1] ^= 1

		// A second attempt, of the next run, meets what the first one left.
		for range 2 {
			err := restoring(api, snapshot)(t.Context())
			if !wait.IsPermanent(err) || !strings.Contains(err.Error(), "expected sha256 [") ||
				!strings.Contains(err.Error(), "reset the machine") {
				t.Errorf("err = %v", err)
			}
		}

		seen := observed(t, api, "failed", func(s step.MachineState) bool { return s.EtcdService.ProvesData() })
		if seen.EtcdService.WithoutData() ||
			!strings.Contains(strings.Join(seen.Unmet, "\n"),
				"etcd: Failed to run pre stage: error recovering from the snapshot") {
			t.Errorf("observed: %+v", seen)
		}

		if _, err := api.EtcdMembers(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "error recovering from the snapshot") {
			t.Errorf("members: %v", err)
		}
	})

	t.Run("nothing is left", func(t *testing.T) {
		t.Parallel()

		m, api, snapshot := lost(t, site(t, sim.Options{}), nil)
		junk := bytes.Repeat([]byte("junk"), 50_000)

		err := restoring(api, junk)(t.Context())
		if !wait.IsPermanent(err) || !strings.Contains(err.Error(), "invalid database") ||
			strings.Contains(err.Error(), "reset the machine") {
			t.Errorf("err = %v", err)
		}

		// It waits as before, and takes a better one.
		seen := api.Observe(t.Context())
		if !seen.EtcdService.WithoutData() || seen.BootstrapRequested ||
			!strings.Contains(strings.Join(seen.Unmet, "\n"), "invalid database") {
			t.Errorf("observed: %+v", seen)
		}

		must(t, restoring(api, snapshot)(t.Context()))
		observed(t, api, "became ready", settled)

		if got, err := m.EtcdKeys(t.Context(), "/test/"); err != nil || !maps.Equal(got, kept) {
			t.Errorf("etcd has %d keys (%v)", len(got), err)
		}
	})
}

// A machine that restarts while it restores is not waited for.
func TestRestore_thatIsInterruptedByAReboot(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	m, api, snapshot := lost(t, simulator, nil)

	// The first list is asked for before the bootstrap.
	m.SetFault(fault.Fault{Method: "ServiceList", From: 2, Crash: true})

	ended := make(chan error, 1)

	go func() { ended <- restoring(api, snapshot)(t.Context()) }()

	must(t, m.AwaitStage(t.Context(), sim.StageUnknown))
	m.ClearFaults()
	m.PowerOn()

	if err := <-ended; !wait.IsPermanent(err) || !strings.Contains(err.Error(), "restarted during the restore") {
		t.Errorf("err = %v", err)
	}

	must(t, retried(t, restoring(api, snapshot)))
	observed(t, api, "became ready", settled)
}

func TestRestore_ofWhatCannotBe(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	f := o.fleet(t, nil)
	m, first := member(t, simulator, o, f, machinetype.TypeControlPlane)
	observed(t, first, "waited for its bootstrap", waitsForBootstrap)
	must(t, first.Bootstrap(t.Context()))
	observed(t, first, "became ready", settled)
	must(t, m.PutEtcdKeys(t.Context(), kept))

	_, worker := member(t, simulator, o, f, machinetype.TypeWorker)
	observed(t, worker, "joined", settled)

	blank := f.Machine(wanted(add(t, simulator, sim.MachineOptions{})))
	snapshot := make([]byte, 512+sha256.Size)

	// A member keeps its data.
	must(t, first.Restore(t.Context(), bytes.NewReader(snapshot), func(context.Context) error { return nil }))

	if err := retried(t, restoring(worker, snapshot)); !errors.Is(err, talos.ErrUnsupported) || !wait.IsPermanent(err) {
		t.Errorf("on a worker: %v", err)
	}

	if err := blank.Restore(t.Context(), bytes.NewReader(snapshot), nil); !errors.Is(err, talos.ErrMaintenance) {
		t.Errorf("in maintenance mode: %v", err)
	}

	if n := len(simulator.CallsTo("EtcdRecover")); n != 0 {
		t.Errorf("%d uploads", n)
	}
}

func TestEtcdSnapshot_thatBreaksOff(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	must(t, api.Bootstrap(t.Context()))
	observed(t, api, "became ready", settled)
	must(t, m.PutEtcdKeys(t.Context(), kept))

	shortTimeouts := o.fleet(t, func(o *talos.Options) { o.Timeouts.Stall = 200 * time.Millisecond }).Machine(wanted(m))

	for name, test := range map[string]struct {
		api   *talos.Machine
		fault fault.Fault
		texts []string // one of them is reported: which end of a connection notices first varies
	}{
		"cut":    {api, fault.Fault{Cut: true}, []string{"EOF", "broken pipe", "connection reset by peer"}},
		"silent": {shortTimeouts, fault.Fault{Latency: time.Hour}, []string{"no data transferred for 200ms"}},
	} {
		test.fault.Method, test.fault.After = "EtcdSnapshot", 200<<10
		m.SetFault(test.fault)

		err := test.api.EtcdSnapshot(t.Context(), io.Discard)
		reported := func(text string) bool { return strings.Contains(err.Error(), text) }
		if !errors.Is(err, talos.ErrUnreachable) || !slices.ContainsFunc(test.texts, reported) {
			t.Errorf("%s: %v", name, err)
		}

		m.ClearFaults()
	}

	ctx, cancel := context.WithCancel(t.Context())
	if err := api.EtcdSnapshot(ctx, canceling{cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// A writer whose owner gives up.
type canceling struct{ cancel context.CancelFunc }

func (w canceling) Write(p []byte) (int, error) {
	w.cancel()

	return len(p), nil
}
