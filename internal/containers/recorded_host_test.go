package containers_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// knownHost is a host cluster that counts what it is asked beside who it is.
type knownHost struct {
	identity workload.Identity
	err      error
	// machine is whether it has one.
	machine      bool
	asked, dones int
}

func (h *knownHost) Identity(context.Context) (workload.Identity, error) {
	h.asked++

	return h.identity, h.err
}

func (h *knownHost) Observe(context.Context, workload.Spec) (workload.Observation, error) {
	h.dones++

	return workload.Observation{Machines: map[string]workload.MachineState{"cp-0": {Exists: h.machine}}}, nil
}

func (h *knownHost) Dial(workload.Spec) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return nil, h.done() }
}

func (h *knownHost) done() error { h.dones++; return nil }

func (h *knownHost) Check(context.Context, workload.Spec) ([]preflight.Finding, error) {
	return nil, h.done()
}
func (h *knownHost) Ensure(context.Context, workload.Spec) error          { return h.done() }
func (h *knownHost) Replace(context.Context, workload.Spec, string) error { return h.done() }
func (h *knownHost) Restart(context.Context, workload.Spec, string) error { return h.done() }
func (h *knownHost) Wipe(context.Context, workload.Spec, string) error    { return h.done() }
func (h *knownHost) Remove(context.Context, workload.Spec, string) error  { return h.done() }
func (h *knownHost) RemoveShared(context.Context, workload.Spec) error    { return h.done() }
func (h *knownHost) ContainerAt(context.Context, workload.Spec, string) (string, bool, error) {
	return "", false, h.done()
}
func (h *knownHost) RestartAt(context.Context, workload.Spec, string) error { return h.done() }
func (h *knownHost) ExternalEndpoint(context.Context, workload.Spec) (string, error) {
	return "", h.done()
}
func (h *knownHost) Close() {}

// everyCall is every call to a host, by name.
func everyCall(ctx context.Context, h containers.Host) map[string]func() error {
	var s workload.Spec

	return map[string]func() error{
		"check":             func() error { _, err := h.Check(ctx, s); return err },
		"observe":           func() error { _, err := h.Observe(ctx, s); return err },
		"ensure":            func() error { return h.Ensure(ctx, s) },
		"replace":           func() error { return h.Replace(ctx, s, "cp-0") },
		"restart":           func() error { return h.Restart(ctx, s, "cp-0") },
		"wipe":              func() error { return h.Wipe(ctx, s, "cp-0") },
		"remove":            func() error { return h.Remove(ctx, s, "cp-0") },
		"remove shared":     func() error { return h.RemoveShared(ctx, s) },
		"container at":      func() error { _, _, err := h.ContainerAt(ctx, s, "dev-cp-0"); return err },
		"restart at":        func() error { return h.RestartAt(ctx, s, "dev-cp-0") },
		"external endpoint": func() error { _, err := h.ExternalEndpoint(ctx, s); return err },
		"dial":              func() error { _, err := h.Dial(s)(ctx, "tcp", "dev-cp-0:50000"); return err },
	}
}

var (
	prod = workload.Identity{UID: "1111", Connection: "context prod", Server: "https://192.0.2.1:6443"}
	test = workload.Identity{UID: "2222", Connection: "context test", Server: "https://192.0.2.2:6443"}
)

// On another host than the recorded one nothing is asked or done, and both are named.
func TestRecorded_refusesAnotherHost(t *testing.T) {
	t.Parallel()

	h := &knownHost{identity: test, machine: true}

	for name, call := range everyCall(t.Context(), containers.Recorded(h, prod, workload.Spec{})) {
		err := call()

		var other *containers.OtherHostError
		if !errors.As(err, &other) || other.Recorded != prod || other.Found != test {
			t.Errorf("%s on another host: %v", name, err)

			continue
		}

		for _, words := range []string{"recorded: context prod (https://192.0.2.1:6443, kube-system UID 1111)",
			"found: context test (https://192.0.2.2:6443, kube-system UID 2222)"} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s on another host does not say %q: %v", name, words, err)
			}
		}
	}

	if h.dones != 0 {
		t.Errorf("%d calls got to another host", h.dones)
	}
}

// The same cluster by another name is the same, and is asked once who it is.
func TestRecorded_allowsTheSameHost(t *testing.T) {
	t.Parallel()

	renamed := prod
	renamed.Connection, renamed.Server = "context admin", "https://prod.example:6443"
	h := &knownHost{identity: renamed}
	calls := everyCall(t.Context(), containers.Recorded(h, prod, workload.Spec{}))

	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	if h.dones != len(calls) || h.asked != 1 {
		t.Errorf("%d calls got there, and it was asked %d times who it is", h.dones, h.asked)
	}

	// Where nothing was recorded, nothing is asked.
	free := &knownHost{err: errors.New("must not be asked")}
	if _, err := containers.Recorded(free, workload.Identity{}, workload.Spec{}).Observe(t.Context(),
		workload.Spec{}); err != nil {
		t.Errorf("without a record: %v", err)
	}
}

// Credentials that may not read who the host is get by as long as it has any of the machines.
func TestRecorded_identityIsUnreadable(t *testing.T) {
	t.Parallel()

	unreadable := test
	unreadable.UID = ""

	with := containers.Recorded(&knownHost{identity: unreadable, machine: true}, prod, workload.Spec{})
	if err := with.Ensure(t.Context(), workload.Spec{}); err != nil {
		t.Errorf("with a machine: %v", err)
	}

	without := containers.Recorded(&knownHost{identity: unreadable}, prod, workload.Spec{})
	err := without.Ensure(t.Context(), workload.Spec{})

	var other *containers.OtherHostError
	if !errors.As(err, &other) || !strings.Contains(err.Error(), "kube-system UID unknown") {
		t.Errorf("without a machine: %v", err)
	}
}

// A host that does not answer is no other host, and is asked again.
func TestRecorded_hostIsSilent(t *testing.T) {
	t.Parallel()

	silent := errors.New("connection refused")
	h := &knownHost{identity: prod, err: silent}
	guarded := containers.Recorded(h, prod, workload.Spec{})

	if _, err := guarded.Observe(t.Context(), workload.Spec{}); !errors.Is(err, silent) || h.dones != 0 {
		t.Errorf("%v, and %d calls got there", err, h.dones)
	}

	h.err = nil

	if _, err := guarded.Observe(t.Context(), workload.Spec{}); err != nil {
		t.Errorf("when it answers again: %v", err)
	}
}
