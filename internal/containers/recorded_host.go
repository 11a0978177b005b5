package containers

import (
	"context"
	"net"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// OtherHostError is that a connection leads to another host cluster than the one that has the machines.
type OtherHostError struct{ Recorded, Found workload.Identity }

func (e *OtherHostError) Error() string {
	return "this is another host cluster than the recorded one; recorded: " + e.Recorded.String() + "; found: " +
		e.Found.String()
}

// Recorded is a host that refuses all calls with an [OtherHostError] unless it is the recorded one. Where the
// credentials may not read its identity, it counts as the recorded one while it has any machine of the spec, which
// are marked by their secrets. A zero identity allows every host.
func Recorded(h Host, recorded workload.Identity, spec workload.Spec) Host {
	if recorded.UID == "" {
		return h
	}

	return &recordedHost{host: h, recorded: recorded, spec: spec}
}

// recordedHost is not embedded, so that a method that is added is guarded or does not compile.
type recordedHost struct {
	host     Host
	recorded workload.Identity
	spec     workload.Spec

	mu sync.Mutex
	// identified is whether the host returned its identity, found is that identity, and refused is why it is the wrong
	// host.
	identified bool
	found      workload.Identity
	refused    error
}

// confirmed is the host, when it is the one that was recorded.
func (r *recordedHost) confirmed(ctx context.Context) (Host, error) {
	_, err := r.Identity(ctx)

	return r.host, err
}

// Identity implements [Host].
func (r *recordedHost) Identity(ctx context.Context) (workload.Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.identified {
		return r.found, r.refused
	}

	found, err := r.host.Identity(ctx)
	if err != nil {
		return workload.Identity{}, err
	}

	same := found.UID == r.recorded.UID
	if found.UID == "" {
		if same, err = r.hasMachines(ctx); err != nil {
			return workload.Identity{}, err
		}
	}

	if r.identified = true; !same {
		r.refused = &OtherHostError{Recorded: r.recorded, Found: found}
	}

	r.found = found

	return r.found, r.refused
}

func (r *recordedHost) hasMachines(ctx context.Context) (bool, error) {
	seen, err := r.host.Observe(ctx, r.spec)

	for _, m := range seen.Machines {
		if m.Exists {
			return true, nil
		}
	}

	return false, err
}

func (r *recordedHost) Check(ctx context.Context, spec workload.Spec) ([]preflight.Finding, error) {
	h, err := r.confirmed(ctx)
	if err != nil {
		return nil, err
	}

	return h.Check(ctx, spec)
}

func (r *recordedHost) Observe(ctx context.Context, spec workload.Spec) (workload.Observation, error) {
	h, err := r.confirmed(ctx)
	if err != nil {
		return workload.Observation{}, err
	}

	return h.Observe(ctx, spec)
}

func (r *recordedHost) ContainerAt(ctx context.Context, spec workload.Spec, address string) (string, bool, error) {
	h, err := r.confirmed(ctx)
	if err != nil {
		return "", false, err
	}

	return h.ContainerAt(ctx, spec, address)
}

func (r *recordedHost) RestartAt(ctx context.Context, spec workload.Spec, address string) error {
	return r.change(ctx, func(h Host) error { return h.RestartAt(ctx, spec, address) })
}

func (r *recordedHost) ExternalEndpoint(ctx context.Context, spec workload.Spec) (string, error) {
	h, err := r.confirmed(ctx)
	if err != nil {
		return "", err
	}

	return h.ExternalEndpoint(ctx, spec)
}

func (r *recordedHost) Dial(spec workload.Spec) func(context.Context, string, string) (net.Conn, error) {
	dial := r.host.Dial(spec)

	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, err := r.confirmed(ctx); err != nil {
			return nil, err
		}

		return dial(ctx, network, address)
	}
}

func (r *recordedHost) Ensure(ctx context.Context, spec workload.Spec) error {
	return r.change(ctx, func(h Host) error { return h.Ensure(ctx, spec) })
}

func (r *recordedHost) Replace(ctx context.Context, spec workload.Spec, machine string) error {
	return r.change(ctx, func(h Host) error { return h.Replace(ctx, spec, machine) })
}

func (r *recordedHost) Restart(ctx context.Context, spec workload.Spec, machine string) error {
	return r.change(ctx, func(h Host) error { return h.Restart(ctx, spec, machine) })
}

func (r *recordedHost) Wipe(ctx context.Context, spec workload.Spec, machine string) error {
	return r.change(ctx, func(h Host) error { return h.Wipe(ctx, spec, machine) })
}

func (r *recordedHost) Remove(ctx context.Context, spec workload.Spec, machine string) error {
	return r.change(ctx, func(h Host) error { return h.Remove(ctx, spec, machine) })
}

func (r *recordedHost) RemoveShared(ctx context.Context, spec workload.Spec) error {
	return r.change(ctx, func(h Host) error { return h.RemoveShared(ctx, spec) })
}

func (r *recordedHost) change(ctx context.Context, carryOut func(Host) error) error {
	h, err := r.confirmed(ctx)
	if err != nil {
		return err
	}

	return carryOut(h)
}

func (r *recordedHost) Close() { r.host.Close() }
