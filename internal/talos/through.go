package talos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// nodeMetadata names the machine that apid of a control plane passes a call on to, one to one: with its answers, errors
// and streams as they are (Talos 1.13 and 1.14, internal/app/apid/pkg/director).
const nodeMetadata = "node"

// first is the address that is connected to.
func (w route) first() string { return cmp.Or(w.relay, w.address) }

// named adds the name of the control plane to an error.
func (w route) named(err error) error {
	if w.relay == "" {
		return err
	}

	return fmt.Errorf("through control plane %s: %w", w.relay, err)
}

// options make the calls of a connection name the machine.
func (w route) options() []grpc.DialOption {
	if w.relay == "" {
		return nil
	}

	to := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, nodeMetadata, w.address)
	}

	return []grpc.DialOption{
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
			call grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			return call(to(ctx), method, req, reply, conn, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			call grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			return call(to(ctx), desc, conn, method, opts...)
		}),
	}
}

func (r *relays) inOrder() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.order)
}

func (r *relays) failed(relay string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if i := slices.Index(r.order, relay); i >= 0 {
		r.order = append(slices.Delete(r.order, i, i+1), relay)
	}
}

// openThrough opens a session to the machine at an address through the first control plane that gets there. The error
// is a throughError.
func (m *Machine) openThrough(ctx context.Context, address string) (*session, error) {
	failed := throughError{address: address}

	for _, relay := range m.fleet.relays.inOrder() {
		s, err := m.openBy(ctx, route{address, relay}, m.fleet.identity)
		if err == nil {
			return s, nil
		}

		m.fleet.relays.failed(relay)

		failed.causes = append(failed.causes, err)
	}

	return nil, failed
}

// openBy opens a session through a control plane. Its peer is the machine, for which the control plane vouches: it
// only forwards calls to a machine with a certificate of the cluster's CA for the address (Talos 1.13 and 1.14,
// internal/app/apid/pkg/backend). So this route reaches nothing in maintenance mode.
func (m *Machine) openBy(ctx context.Context, w route, id identity) (*session, error) {
	s, _, err := m.fleet.options.connect(ctx, w, id, "")
	if err != nil {
		return nil, w.named(err)
	}

	// Apid in maintenance mode answers itself, for every machine that a call names.
	if err := s.expect(step.Member); err != nil {
		s.close()

		return nil, w.named(err)
	}

	s.peer = peer{access: step.Member}

	if s.peer.fqdn, err = bounded(ctx, m, s.fqdn); err != nil {
		silent := s.connected() && status.Code(err) == codes.Unavailable
		s.close()

		if silent {
			return nil, silentError{err}
		}

		return nil, s.named(err)
	}

	return s, nil
}

// openAs opens a session by a way, for another client than that of the fleet.
func (m *Machine) openAs(ctx context.Context, w route, id identity) (*session, error) {
	if w.relay == "" {
		s, _, err := m.fleet.options.connect(ctx, w, id, "")

		return s, err
	}

	s, err := m.openBy(ctx, w, id)
	if err != nil {
		return nil, throughError{w.address, []error{err}}
	}

	return s, nil
}

// fqdn is the machine's host name and domain; empty while it has none.
func (s *session) fqdn(ctx context.Context) (string, error) {
	res, err := get[*network.HostnameStatus](ctx, s, network.NamespaceName, network.HostnameStatusType,
		network.HostnameID)
	if err != nil {
		return "", optional(err)
	}

	return res.TypedSpec().FQDN(), nil
}

// silentError is that a control plane says that it does not get through to a machine.
type silentError struct{ error }

// throughError is that a machine was reached through none of the control planes: it is unreachable, whatever these
// answered.
type throughError struct {
	address string
	causes  []error
}

func (e throughError) Error() string {
	if len(e.causes) == 0 {
		return fmt.Sprintf("%s: no known control plane can proxy to %s", ErrUnreachable, e.address)
	}

	var texts []string
	for _, cause := range e.causes {
		texts = append(texts, strings.ReplaceAll(cause.Error(), ErrUnreachable.Error()+": ", ""))
	}

	if !e.untried() {
		texts = append(texts, "control planes cannot proxy to machines in maintenance mode")
	}

	return fmt.Sprintf("%s: %s", ErrUnreachable, strings.Join(texts, "; "))
}

func (e throughError) Unwrap() error { return ErrUnreachable }

// untried is true when no control plane tried, which says nothing about the machine.
func (e throughError) untried() bool {
	return !slices.ContainsFunc(e.causes, func(cause error) bool {
		var silent silentError

		return errors.As(cause, &silent)
	})
}
