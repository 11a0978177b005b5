package talos_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

func TestApplyConfig_returnsWhenMaintenanceIsOver(t *testing.T) {
	t.Parallel()

	for _, version := range []string{"v1.13.0", "v1.12.6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{TalosVersion: version})
			o := newOwner(t, simulator)
			m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)

			if got := api.Observe(t.Context()); got.Access == step.Maintenance {
				t.Errorf("right after: %+v", got)
			}

			// A second run that believes the machine still waits sends nothing.
			err := api.ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance, m.UUID())
			if err == nil || wait.IsPermanent(err) || len(simulator.CallsTo("ApplyConfiguration")) != 1 {
				t.Errorf("again: %v with %d calls", err, len(simulator.CallsTo("ApplyConfiguration")))
			}
		})
	}
}

func TestApplyConfig_afterALostAnswer(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{})
	configuration := o.config(t, machinetype.TypeControlPlane)

	// Lost before it was served: the machine still waits, and that is the reason.
	m.SetFault(fault.Fault{Method: "ApplyConfiguration", Cut: true})

	err := o.fleet(t, shortly).Machine(wanted(m)).ApplyConfig(t.Context(), configuration, step.Maintenance, m.UUID())
	if !errors.Is(err, talos.ErrUnreachable) || wait.IsPermanent(err) ||
		!strings.Contains(err.Error(), "still in maintenance mode") {
		t.Errorf("lost request: %v", err)
	}

	// Lost after it was served: leaving maintenance mode is the answer.
	m.ClearFaults()
	m.SetFault(fault.Fault{Method: "ApplyConfiguration", DropResponse: true})

	must(t, o.fleet(t, nil).Machine(wanted(m)).ApplyConfig(t.Context(), configuration, step.Maintenance, m.UUID()))

	if n := len(simulator.CallsTo("ApplyConfiguration")); n != 2 {
		t.Errorf("%d calls, want one for each of two applies", n)
	}
}

func TestApplyConfig_errors(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		fault     fault.Fault
		config    func(*testing.T, []byte) []byte
		uuid      string
		access    step.Access
		class     error
		permanent bool
		text      string
	}{
		"another hardware UUID": {
			uuid: "11111111-2222-3333-4444-555555555555", class: talos.ErrForeign, permanent: true,
			text: "expected 11111111-2222-3333-4444-555555555555",
		},
		"a busy machine": {
			fault: fault.Fault{Code: codes.FailedPrecondition, Message: "another apply configuration is already in progress"},
			class: talos.ErrInProgress, text: "already in progress",
		},
		"a restarting machine": {fault: fault.Fault{Code: codes.Unavailable, Message: "starting"}, class: talos.ErrUnreachable,
			text: "starting"},
		"configured meanwhile": {fault: fault.Fault{Code: codes.PermissionDenied, Message: "not authorized"},
			class: talos.ErrNotAuthorized, text: "already has a configuration"},
		"an agent": {fault: fault.Fault{Code: codes.Unimplemented, Message: "agent mode"},
			class: talos.ErrUnsupported, permanent: true},
		"an unknown key": {
			config: func(t *testing.T, c []byte) []byte {
				t.Helper()

				return replaced(t, c, "machine:\n", "machine:\n    secretly: sesame-open\n")
			},
			class: talos.ErrRejected, permanent: true, text: "unknown keys",
		},
		"a member expected": {access: step.Member, class: talos.ErrMaintenance},
		"a foreign machine": {access: step.Foreign, permanent: true, text: "foreign"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			o := newOwner(t, simulator)
			m := add(t, simulator, sim.MachineOptions{})

			if test.fault.Code != codes.OK {
				test.fault.Method = "ApplyConfiguration"
				m.SetFault(test.fault)
			}

			configuration := o.config(t, machinetype.TypeWorker)
			if test.config != nil {
				configuration = test.config(t, configuration)
			}

			if test.access == "" {
				test.access = step.Maintenance
			}

			err := o.fleet(t, shortly).Machine(wanted(m)).ApplyConfig(t.Context(), configuration, test.access, test.uuid)
			if err == nil || test.class != nil && !errors.Is(err, test.class) || wait.IsPermanent(err) != test.permanent ||
				!strings.Contains(err.Error(), test.text) {
				t.Errorf("err = %v (permanent %t), want %v (permanent %t)", err, wait.IsPermanent(err), test.class, test.permanent)
			}

			if strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), o.bundle.TrustdInfo.Token) {
				t.Errorf("the error shows the configuration: %v", err)
			}

			if sent := len(simulator.CallsTo("ApplyConfiguration")); test.uuid != "" && sent != 0 {
				t.Errorf("%d configurations were sent to another machine", sent)
			}
		})
	}
}

// What is asked before a member gets a configuration has the last word, and is asked about the one that it runs with.
func TestApplyConfig_thatAMemberDoesNotTake(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, _, config := waiting(t, simulator, o, o.fleet(t, nil))

	simulator.ForgetCalls()

	api := o.fleet(t, func(options *talos.Options) {
		options.Takes = func(active, wanted []byte) error {
			if string(active) == string(wanted) {
				return nil
			}

			return errors.New("not with this disk")
		}
	}).Machine(wanted(m))

	must(t, api.ApplyConfig(t.Context(), config, step.Member, m.UUID()))

	for how, err := range map[string]error{
		"apply": api.ApplyConfig(t.Context(), withSysctl(t, config), step.Member, m.UUID()),
		"stage": api.StageConfig(t.Context(), withSysctl(t, config), m.UUID()),
		"try":   api.TryConfig(t.Context(), withSysctl(t, config), m.UUID(), time.Minute),
	} {
		if !errors.Is(err, talos.ErrRejected) || !wait.IsPermanent(err) || !strings.Contains(err.Error(), "this disk") {
			t.Errorf("%s: %v", how, err)
		}
	}

	if sent := simulator.CallsTo("ApplyConfiguration"); len(sent) != 1 {
		t.Errorf("sent were %v, want what it had alone", sent)
	}
}

func TestApplyConfig_toAMember(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	before := observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	boots := m.Boots()

	configuration := replaced(t, o.config(t, machinetype.TypeControlPlane), "machine:\n",
		"machine:\n    sysctls:\n        vm.swappiness: \"10\"\n")
	must(t, api.ApplyConfig(t.Context(), configuration, step.Member, m.UUID()))

	if after := api.Observe(t.Context()); after.ConfigDigest == before.ConfigDigest || m.Boots() != boots {
		t.Errorf("digest %s -> %s, %d boots", before.ConfigDigest, after.ConfigDigest, m.Boots()-boots)
	}

	// The token takes a reboot, and Talos explains that with a diff in clear text.
	token := o.bundle.TrustdInfo.Token

	err := api.ApplyConfig(t.Context(), replaced(t, configuration, token, "abcdef.0123456789abcdef"), step.Member,
		m.UUID())
	if !errors.Is(err, talos.ErrRejected) || !wait.IsPermanent(err) || strings.Contains(err.Error(), token) ||
		strings.Contains(err.Error(), "abcdef.") || !strings.Contains(err.Error(), "immediate mode") || m.Boots() != boots {
		t.Errorf("a change that needs a reboot: %v, %d boots", err, m.Boots()-boots)
	}
}

func TestBootstrap_once(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		fault fault.Fault
		// first is the class of the first attempt's error.
		first error
		calls int
	}{
		"an answer":      {calls: 1},
		"a lost answer":  {fault: fault.Fault{DropResponse: true}, calls: 1},
		"a lost request": {fault: fault.Fault{Cut: true}, first: talos.ErrUnreachable, calls: 2},
		"not yet": {fault: fault.Fault{Code: codes.FailedPrecondition, Message: "time is not in sync yet"},
			first: talos.ErrInProgress, calls: 2},
		"unavailable": {fault: fault.Fault{Code: codes.Unavailable, Message: "restarting"}, first: talos.ErrUnreachable,
			calls: 2},
		"data is there": {fault: fault.Fault{Code: codes.AlreadyExists, Message: "etcd data directory is not empty"},
			calls: 2},
		"an early crash": {fault: fault.Fault{Crash: true}, first: talos.ErrUnreachable, calls: 2},
		"no role for it": {fault: fault.Fault{Code: codes.PermissionDenied, Message: "not authorized"},
			first: talos.ErrNotAuthorized, calls: 2},
		"an unknown call": {fault: fault.Fault{Code: codes.Unimplemented, Message: "only available on control plane nodes"},
			first: talos.ErrUnsupported, calls: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			o := newOwner(t, simulator)
			m, api := member(t, simulator, o, o.fleet(t, shortlyUnless(test.first == nil)), machinetype.TypeControlPlane)
			observed(t, api, "waited for its bootstrap", waitsForBootstrap)

			if test.fault != (fault.Fault{}) {
				test.fault.Method = "Bootstrap"
				m.SetFault(test.fault)
			}

			if err := api.Bootstrap(t.Context()); !errors.Is(err, test.first) {
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
				err := retried(t, api.Bootstrap)
				if err != nil {
					t.Fatalf("a later attempt: %v", err)
				}
			}

			observed(t, api, "became ready", settled)

			if n := len(simulator.CallsTo("Bootstrap")); n != test.calls {
				t.Errorf("%d bootstrap calls, want %d: %v", n, test.calls, simulator.CallsTo("Bootstrap"))
			}
		})
	}
}

// A control plane waits for its bootstrap for half an hour: its etcd fails, and still accepts the bootstrap.
func TestBootstrap_ofAnEtcdThatGaveUp(t *testing.T) {
	t.Parallel()

	delays := timing.TestDelays()
	delays.EtcdGiveUp = time.Millisecond

	simulator := site(t, sim.Options{Delays: &delays})
	o := newOwner(t, simulator)
	_, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "gave up", func(s step.MachineState) bool { return s.EtcdService == step.ServiceFailed })
	must(t, api.Bootstrap(t.Context()))
	observed(t, api, "became ready", settled)

	if n := len(simulator.CallsTo("Bootstrap")); n != 1 {
		t.Errorf("%d bootstrap calls, want 1", n)
	}
}

// retried repeats a call as the engine does: until it succeeds, or fails permanently.
func retried(t *testing.T, call func(context.Context) error) error {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
	defer cancel()

	return wait.Until(ctx, 5*time.Millisecond, call)
}

func TestBootstrap_isReported(t *testing.T) {
	t.Parallel()

	slow := timing.TestDelays()
	slow.EtcdStart = time.Hour

	simulator := site(t, sim.Options{Delays: &slow})
	o := newOwner(t, simulator)
	_, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	must(t, api.Bootstrap(t.Context()))

	if got := api.Observe(t.Context()); !got.BootstrapRequested || got.EtcdService == step.ServiceRunning {
		t.Errorf("while etcd starts: %+v", got)
	}

	must(t, api.Bootstrap(t.Context()))

	if n := len(simulator.CallsTo("Bootstrap")); n != 1 {
		t.Errorf("%d bootstrap calls, want 1", n)
	}
}

func TestBootstrap_ofAWorker(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	f := o.fleet(t, nil)
	_, first := member(t, simulator, o, f, machinetype.TypeControlPlane)
	observed(t, first, "waited for its bootstrap", waitsForBootstrap)

	_, worker := member(t, simulator, o, f, machinetype.TypeWorker)
	observed(t, worker, "joined", func(s step.MachineState) bool { return s.Access == step.Member })

	// The API restarts for a moment when the worker learns its name.
	err := retried(t, worker.Bootstrap)
	if !errors.Is(err, talos.ErrUnsupported) || !wait.IsPermanent(err) {
		t.Errorf("err = %v", err)
	}

	if n := len(simulator.CallsTo("Bootstrap")); n != 0 {
		t.Errorf("%d bootstrap calls to a worker", n)
	}
}

func TestReset_withFaults(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		fault fault.Fault
		first error
		calls int
	}{
		"an answer":      {calls: 1},
		"a lost answer":  {fault: fault.Fault{DropResponse: true}, calls: 1},
		"a lost request": {fault: fault.Fault{Cut: true}, first: talos.ErrInProgress, calls: 2},
		"unavailable":    {fault: fault.Fault{Code: codes.Unavailable}, first: talos.ErrUnreachable, calls: 2},
		"no role for it": {fault: fault.Fault{Code: codes.PermissionDenied}, first: talos.ErrNotAuthorized, calls: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			o := newOwner(t, simulator)

			m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
			observed(t, api, "waited for its bootstrap", waitsForBootstrap)

			if test.fault != (fault.Fault{}) {
				test.fault.Method = "Reset"
				m.SetFault(test.fault)
			}

			first := o.fleet(t, shortlyUnless(test.first == nil)).Machine(wanted(m))
			if err := first.Reset(t.Context(), false, wipe.Reset{}); !errors.Is(err, test.first) {
				t.Fatalf("first attempt: %v, want %v", err, test.first)
			}

			m.ClearFaults()

			if test.first != nil {
				must(t, api.Reset(t.Context(), false, wipe.Reset{}))
			}

			observed(t, api, "waited in maintenance mode",
				func(s step.MachineState) bool { return s.Access == step.Maintenance })

			if n := len(simulator.CallsTo("Reset")); n != test.calls || !m.Installed() || m.Configured() {
				t.Errorf("%d calls, want %d; installed %t, configured %t", n, test.calls, m.Installed(), m.Configured())
			}
		})
	}
}

// A reset waits for a machine that is never ready after an upgrade, and then still resets it.
func TestReset_whenTheLastUpgradeIsNotProved(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)

	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	m.SetMeta(metakey.PreviousEntry, "A")

	hasty := o.fleet(t, shortly).Machine(wanted(m))
	if err := hasty.Reset(t.Context(), false, wipe.Reset{}); err != nil && !errors.Is(err, talos.ErrInProgress) {
		t.Fatal(err)
	}

	observed(t, api, "waited in maintenance mode",
		func(s step.MachineState) bool { return s.Access == step.Maintenance })
}

func TestReset_refuses(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{})
	f := o.fleet(t, nil)

	if err := f.Machine(wanted(m)).Reset(t.Context(), false, wipe.Reset{}); !errors.Is(err, talos.ErrMaintenance) {
		t.Errorf("in maintenance mode: %v", err)
	}

	must(t, f.Machine(wanted(m)).ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance,
		""))
	observed(t, f.Machine(wanted(m)), "waited for its bootstrap", waitsForBootstrap)

	other := wanted(m)
	other.UUID = "11111111-2222-3333-4444-555555555555"

	for what, call := range map[string]func() error{
		"reset":     func() error { return o.fleet(t, nil).Machine(other).Reset(t.Context(), false, wipe.Reset{}) },
		"bootstrap": func() error { return o.fleet(t, nil).Machine(other).Bootstrap(t.Context()) },
	} {
		if err := call(); !errors.Is(err, talos.ErrForeign) || !wait.IsPermanent(err) {
			t.Errorf("%s of another machine: %v", what, err)
		}
	}

	if n := len(simulator.CallsTo("Reset")) + len(simulator.CallsTo("Bootstrap")); n != 0 {
		t.Errorf("%d calls reached the wrong machine", n)
	}
}

// A member that is shut down is off, and still has its configuration. Other hardware is left alone.
func TestShutdown_keepsItsData(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)

	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	if err := api.Shutdown(t.Context(), "11111111-2222-3333-4444-555555555555"); !errors.Is(err, talos.ErrForeign) {
		t.Errorf("shutdown of another machine: %v", err)
	}

	must(t, api.Shutdown(t.Context(), m.UUID()))
	observed(t, api, "off", func(s step.MachineState) bool { return s.Access == step.Unreachable })

	if calls := simulator.CallsTo("Shutdown"); len(calls) != 1 || !m.Configured() {
		t.Errorf("%d calls; configured %t", len(calls), m.Configured())
	}
}

// Early in a boot a machine does not know its hardware yet. Nothing is sent to it,
// and it is asked again.
func TestReset_asksAMachineWithoutAUUIDAgain(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{Platform: machined.Container})
	api := o.fleet(t, nil).Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}})

	err := api.ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance,
		"11111111-2222-3333-4444-555555555555")
	if !errors.Is(err, talos.ErrInProgress) || wait.IsPermanent(err) ||
		!strings.Contains(err.Error(), "reports no hardware UUID") {
		t.Errorf("err = %v", err)
	}

	if n := len(simulator.CallsTo("ApplyConfiguration")); n != 0 {
		t.Errorf("%d configurations were sent", n)
	}
}

// A container has no partitions to name, and ends instead of rebooting.
func TestReset_ofAContainer(t *testing.T) {
	t.Parallel()

	api := waitingContainer(t)

	must(t, api.Reset(t.Context(), false, wipe.Reset{}))
	observed(t, api, "ended", func(s step.MachineState) bool { return s.Access == step.Unreachable })
}

func TestChanges_endWithTheirContext(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{})
	m.SetFault(fault.Fault{Method: "ApplyConfiguration", Latency: time.Hour, Count: -1})

	ctx, cancel := context.WithCancel(t.Context())
	simulator.SetOnCall(func(c fault.Call) error {
		if c.Method == "ApplyConfiguration" {
			cancel()
		}

		return nil
	})

	endless := o.fleet(t, func(o *talos.Options) { o.Timeouts.Change, o.Timeouts.Settle = time.Hour, time.Hour })

	err := endless.Machine(wanted(m)).ApplyConfig(ctx, o.config(t, machinetype.TypeWorker), step.Maintenance, m.UUID())
	if err == nil || wait.IsPermanent(err) {
		t.Errorf("err = %v", err)
	}
}

// Talos 1.14 may keep the data of etcd, containers, kubelet and logs on separate partitions, which stay unless they
// are named; and it refuses the name of one that is a directory on EPHEMERAL.
func TestReset_wipesVolumesOfTheirOwn(t *testing.T) {
	t.Parallel()

	const volumes = "\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ETCD\nprovisioning:\n  diskSelector: {match: " +
		"system_disk}\n  minSize: 1GiB\n  maxSize: 2GiB\n"

	for name, test := range map[string]struct{ version, volumes, wiped string }{
		"Talos 1.13":         {version: "v1.13.6", wiped: "STATE EPHEMERAL"},
		"Talos 1.14":         {version: "v1.14.1", wiped: "STATE EPHEMERAL"},
		"Talos 1.14 and two": {version: "v1.14.1", volumes: volumes, wiped: "STATE EPHEMERAL ETCD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{TalosVersion: test.version})
			o := newOwner(t, simulator)
			m := add(t, simulator, sim.MachineOptions{})
			api := o.fleet(t, nil).Machine(wanted(m))
			config := append(o.config(t, machinetype.TypeControlPlane), test.volumes...)

			must(t, api.ApplyConfig(t.Context(), config, step.Maintenance, m.UUID()))
			observed(t, api, "waited for its bootstrap", waitsForBootstrap)
			must(t, api.Bootstrap(t.Context()))
			observed(t, api, "became ready", settled)
			must(t, api.Reset(t.Context(), false, wipe.Reset{}))
			observed(t, api, "waited in maintenance mode",
				func(s step.MachineState) bool { return s.Access == step.Maintenance })

			if calls := simulator.CallsTo("Reset"); len(calls) != 1 || calls[0].Detail != test.wiped {
				t.Errorf("wiped %v, want %s", calls, test.wiped)
			}

			// With the data of its member it could not be bootstrapped.
			must(t, api.ApplyConfig(t.Context(), config, step.Maintenance, m.UUID()))
			observed(t, api, "waited for its bootstrap again", waitsForBootstrap)
			must(t, api.Bootstrap(t.Context()))
			observed(t, api, "became ready again", settled)
		})
	}
}
