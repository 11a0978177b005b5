package machines_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

var errKilled = errors.New("the process was killed")

// killedHost is a host that ends its provider process at the n-th call: before the call or, when late, after it and
// before its answer.
type killedHost struct {
	containers.Host

	Mu    sync.Mutex
	calls int
	At    int
	late  bool
	gone  bool
	conns []net.Conn
	kill  context.CancelCauseFunc
}

// die ends the process. To every other party that is the end of its connections. It closes them, and nothing that
// the process does afterwards has an effect, such as the work of a run that was only canceled.
func (m *killedHost) die() error {
	m.Mu.Lock()
	defer m.Mu.Unlock()

	m.gone = true

	for _, conn := range m.conns {
		_ = conn.Close()
	}

	m.kill(errKilled)

	return errKilled
}

func (m *killedHost) dead() bool {
	m.Mu.Lock()
	defer m.Mu.Unlock()

	return m.gone
}

// call is the outcome of a call.
func (m *killedHost) call(do func() error) error {
	m.Mu.Lock()
	m.calls++
	dies := m.calls == m.At
	m.Mu.Unlock()

	switch {
	case m.dead():
		return errKilled
	case dies && !m.late:
		return m.die()
	}

	err := do()
	if dies {
		return m.die()
	}

	return err
}

func (m *killedHost) Observe(ctx context.Context, s workload.Spec) (workload.Observation, error) {
	if m.dead() {
		return workload.Observation{}, errKilled
	}

	return m.Host.Observe(ctx, s)
}

func (m *killedHost) ExternalEndpoint(ctx context.Context, s workload.Spec) (string, error) {
	if m.dead() {
		return "", errKilled
	}

	return m.Host.ExternalEndpoint(ctx, s)
}

// Dial makes connections to the machines and to their Kubernetes, which end with the process.
func (m *killedHost) Dial(s workload.Spec) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := m.Host.Dial(s)

	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		m.Mu.Lock()
		defer m.Mu.Unlock()

		if m.gone {
			return nil, errors.Join(errKilled, conn.Close())
		}

		m.conns = append(m.conns, conn)

		return conn, nil
	}
}

func (m *killedHost) Wipe(ctx context.Context, s workload.Spec, machine string) error {
	return m.call(func() error { return m.Host.Wipe(ctx, s, machine) })
}

func (m *killedHost) Check(ctx context.Context, s workload.Spec) (found []preflight.Finding, err error) {
	err = m.call(func() (err error) { found, err = m.Host.Check(ctx, s); return err })

	return found, err
}

func (m *killedHost) Ensure(ctx context.Context, s workload.Spec) error {
	return m.call(func() error { return m.Host.Ensure(ctx, s) })
}

func (m *killedHost) Replace(ctx context.Context, s workload.Spec, machine string) error {
	return m.call(func() error { return m.Host.Replace(ctx, s, machine) })
}

func (m *killedHost) Restart(ctx context.Context, s workload.Spec, machine string) error {
	return m.call(func() error { return m.Host.Restart(ctx, s, machine) })
}

func (m *killedHost) Remove(ctx context.Context, s workload.Spec, machine string) error {
	return m.call(func() error { return m.Host.Remove(ctx, s, machine) })
}

func (m *killedHost) RemoveShared(ctx context.Context, s workload.Spec) error {
	return m.call(func() error { return m.Host.RemoveShared(ctx, s) })
}

// A process that is killed at a call to the host costs nothing: the next one finishes its work from the earlier
// state, even from none at all after a create.
func TestContainer_survivesKilledRuns(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	secrets := tftest.NewBundle(t)
	small := s.cluster("dev", secrets, 1, 1)
	changed := tftest.With(tftest.With(s.cluster("dev", secrets, 1, 2), "v1.13.1", "talos_version"), 2, "workers",
		"batch", "replicas")

	for _, change := range []struct {
		what   string
		config tftest.Config
	}{{"create", small}, {"change", changed}, {"destroy", nil}} {
		s.killed(t, d, change.what, change.config)

		if change.config != nil {
			d.Ready(t, change.config)
			d.ExpectEmpty(t, "after the "+change.what, change.config)
		}
	}

	d.Apply(t, nil).Must(t)
	s.expectNothing(t, "dev")

	if got := s.bootstraps(); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}
}

// killed starts a change several times, and kills the process at one call after the other; each time the state is
// lost.
func (s *hostSite) killed(t *testing.T, d *tftest.Driven, what string, config tftest.Config) {
	t.Helper()

	for at := 1; ; at++ {
		if !s.dies(t, d, at, at%2 == 0, config) {
			t.Logf("%s ends after %d calls to the host", what, at-1)

			return
		}

		if at >= 2 && !testenv.Everything() {
			return
		}
	}
}

// dies starts a change in a process that is killed at a call to the host, counted from after the plan; late is after
// the call and before its answer. The state is lost. It reports whether there were that many calls.
func (s *hostSite) dies(t *testing.T, d *tftest.Driven, at int, late bool, config tftest.Config) bool {
	t.Helper()

	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)

	host := &killedHost{late: late, kill: kill}

	wrapped := *s
	wrapped.wrap = func(h containers.Host) containers.Host {
		host.Host = h

		return host
	}

	doomed := *d
	doomed.Server = wrapped.serve(t)
	planned := doomed.Plan(t, config).Must(t)

	host.Mu.Lock()
	host.calls, host.At = 0, at
	host.Mu.Unlock()

	doomed.ApplyPlanned(ctx, t, config, planned)

	return errors.Is(context.Cause(ctx), errKilled)
}
