package talos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosiclient "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// session is one connection to one machine, bound to the identity that the
// handshake found. It never reconnects. One through a control plane is bound to that, which connects to the machine
// when it has to.
type session struct {
	route
	peer peer
	wire *wire
	conn *grpc.ClientConn

	machine   machineapi.MachineServiceClient
	lifecycle machineapi.LifecycleServiceClient
	images    machineapi.ImageServiceClient
	resources cosi.StateClient
	state     state.State

	known known
	// unanswered is true once the control plane in between did not get through to the machine.
	unanswered atomic.Bool
}

// known are the machine's answers that cannot change before its next boot; no connection to the machine itself
// outlives a boot. The UUID is not among them: META overrides it at once.
type known struct {
	boot    kept[string]
	image   kept[*bootedImage]
	version kept[*machineapi.Version]
}

// kept is an answer that holds for as long as a connection does.
type kept[T comparable] struct{ answer atomic.Pointer[T] }

// route is how a session reaches a machine.
type route struct {
	// address of the machine.
	address string
	// relay is the address of the control plane that passes the calls on; empty for a connection to the machine itself.
	relay string
}

// once returns the cached value, or else the answer of the call. It caches nothing of a machine behind a control
// plane, and no zero answer: early in a boot there may be none yet.
func once[T comparable](
	ctx context.Context, s *session, k *kept[T], call func(context.Context) (T, error),
) (T, error) {
	if answer := k.answer.Load(); answer != nil {
		return *answer, nil
	}

	answer, err := call(ctx)
	if nothing := *new(T); err == nil && answer != nothing {
		k.keep(s, answer)
	}

	return answer, err
}

func (k *kept[T]) keep(s *session, answer T) {
	if s.relay == "" {
		k.answer.Store(&answer)
	}
}

// errUsed is what gRPC gets when it wants to replace a broken connection.
var errUsed = errors.New("the connection was lost")

// open connects to an address. What it knows of the peer is returned with an error
// too, since a refusal may come after the certificate was seen.
func (o Options) open(ctx context.Context, address string, id identity, fingerprint string) (*session, peer, error) {
	return o.connect(ctx, route{address: address}, id, fingerprint)
}

// connect is open by any route. While the server is silent, it tries one more connection after the other beside the
// first: a machine that starts its API may take connections before it answers, and never answer these. The first
// result counts.
func (o Options) connect(ctx context.Context, w route, id identity, fingerprint string) (*session, peer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeouts.Connect,
		fmt.Errorf("%w: no response within %s", ErrUnreachable, o.Timeouts.Connect))
	defer cancel()

	type result struct {
		s    *session
		peer peer
		err  error
	}

	results, over := make(chan result), make(chan struct{})
	defer close(over)

	attempt := func() {
		var r result
		if err := panics.Call(func() { r.s, r.peer, r.err = o.attempt(ctx, w, id, fingerprint) }); err != nil {
			r = result{err: err}
		}

		select {
		case results <- r:
		case <-over:
			if r.s != nil {
				r.s.close()
			}
		}
	}

	silence := time.NewTicker(o.Timeouts.Silence)
	defer silence.Stop()

	for {
		go attempt()

		select {
		case r := <-results: // every attempt ends with ctx
			return r.s, r.peer, r.err
		case <-silence.C:
		}
	}
}

// attempt makes one connection.
func (o Options) attempt(ctx context.Context, w route, id identity, fingerprint string) (*session, peer, error) {
	at, name := o.place(w.first())

	raw, err := o.Dial(ctx, "tcp", at)
	if ctx.Err() != nil && err != nil {
		return nil, peer{}, callError(context.Cause(ctx))
	}

	if err != nil {
		return nil, peer{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}

	g := gatekeeper{host: name, identity: id, fingerprint: fingerprint, now: time.Now}

	s, err := g.session(ctx, raw, w)
	if err != nil {
		_ = raw.Close() // given up either way

		return nil, g.peer, err
	}

	return s, g.peer, nil
}

// place is where a machine is dialed, and the name or address that its certificate has to be made for.
func (o Options) place(address string) (dialed, name string) {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return address, host
	}

	return cmp.Or(o.Endpoints[address], net.JoinHostPort(address, strconv.Itoa(o.Port))), address
}

// session turns a TCP connection, to the first place of a way, into a session.
func (g *gatekeeper) session(ctx context.Context, raw net.Conn, by route) (*session, error) {
	conn, err := g.handshake(ctx, raw)
	if err != nil {
		return nil, err
	}

	if err := g.verifyInMaintenance(ctx, raw); err != nil {
		return nil, err
	}

	w := &wire{Conn: conn, limited: g.peer.access == step.Maintenance, left: maxUnprovenBytes}
	if err := w.greeted(ctx); err != nil {
		return nil, err
	}

	s, err := newSession(by, w, g.peer)
	if err != nil {
		return nil, err
	}

	if err := s.ready(ctx); err != nil {
		s.close()

		return nil, err
	}

	return s, nil
}

func newSession(by route, w *wire, p peer) (*session, error) {
	var used atomic.Bool

	longest := constants.GRPCMaxMessageSize
	if p.access == step.Maintenance {
		longest = maxUnprovenMessage
	}

	conn, err := grpc.NewClient("passthrough:///"+by.first(), append(by.options(),
		// TLS is done: the connection that gRPC gets is the inside of it.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errUsed
			}

			return w, nil
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(longest)),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
	)...)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", by.first(), err)
	}

	resources := cosi.NewStateClient(conn)

	return &session{
		route:     by,
		peer:      p,
		wire:      w,
		conn:      conn,
		machine:   machineapi.NewMachineServiceClient(conn),
		lifecycle: machineapi.NewLifecycleServiceClient(conn),
		images:    machineapi.NewImageServiceClient(conn),
		resources: resources,
		state:     state.WrapCore(cosiclient.NewAdapter(resources, cosiclient.WithDisableWatchRetry())),
	}, nil
}

// ready waits until gRPC has taken the connection into use.
func (s *session) ready(ctx context.Context) error {
	for {
		switch now := s.conn.GetState(); now {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return s.lost(errUsed)
		case connectivity.Idle:
			s.conn.Connect()
			fallthrough
		default:
			if !s.conn.WaitForStateChange(ctx, now) {
				return callError(context.Cause(ctx))
			}
		}
	}
}

// lost explains a connection that does not work: by the error that broke it, or
// else by the fallback.
func (s *session) lost(fallback error) error {
	err := s.wire.broken()
	if err == nil || errors.Is(err, net.ErrClosed) {
		// gRPC itself closed it, because the server ended the connection.
		err = fallback
	}

	if a, ok := alertOf(err); ok && s.relay == "" {
		return a.verdict()
	}

	return fmt.Errorf("%w: %w", ErrUnreachable, s.named(err))
}

// alive is false once the connection broke, or the control plane in between did not get through. An error of a call on
// a session that is still alive was the machine's own answer.
func (s *session) alive() bool { return s.connected() && !s.unanswered.Load() }

func (s *session) connected() bool {
	return s.wire.broken() == nil && s.conn.GetState() == connectivity.Ready
}

// close ends the session and every call on it.
func (s *session) close() {
	// Closing twice is the only error there is.
	_ = s.conn.Close()
	_ = s.wire.Close()
}

// failed gives the error of a call on this session its class.
func (s *session) failed(err error) error {
	if err == nil {
		return nil
	}

	switch {
	case unreachable(err) && !s.connected():
		return s.lost(plain(err))
	case s.relay != "" && (status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded):
		// Apid keeps its connection to a machine that went down without a word, for minutes (Talos 1.13,
		// internal/app/apid/pkg/backend), and waits on it. Another control plane may have none.
		s.unanswered.Store(true)

		return fmt.Errorf("%w: %w", ErrUnreachable, s.named(plain(err)))
	default:
		return callError(err)
	}
}

// expect checks how the machine answers.
func (s *session) expect(access step.Access) error {
	switch {
	case s.peer.access == access:
		return nil
	case s.peer.access == step.Maintenance:
		return fmt.Errorf("%w, expected a member of the cluster", ErrMaintenance)
	default:
		return fmt.Errorf("%w: the machine is already configured", ErrConfigured)
	}
}
