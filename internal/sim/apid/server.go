// Package apid serves the API of a simulated machine. It has its two personalities with their certificates, roles,
// forwarding to other machines, the record of calls with their faults, and the resources that clients may read.
package apid

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosiserver "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// A listener that is replaced lets calls finish, as Talos does, which waits ten seconds
// for all of them. What matters is that answers get out, such as that to
// ApplyConfiguration: streams, which may continue for ever, get a moment only.
const (
	gracefulStop = 5 * time.Second
	streamStop   = 100 * time.Millisecond
)

// RebindPause is the pause before another attempt to listen on the machine's address.
const RebindPause = 20 * time.Millisecond

// Host is what the API server needs of the machine's parts and of its cluster.
type Host interface {
	// Register registers the services that the machine has, or those of the maintenance server
	// before Talos 1.13.
	Register(srv *grpc.Server, legacyMaintenance bool)
	// Joined says whether the machine knows its cluster, and Trust who signs a worker's certificate, nil while
	// there is no signer; the world is held.
	Joined() bool
	Trust() *certs.Authority
	// Members are the members of the cluster that the machine shows, nil while it shows none.
	Members() state.CoreState
	// Resolve turns a machine's hostname into its address; anything else stays as it is.
	Resolve(target string) string
	// Admits says whether the machine's firewall lets a client connect to its configured API.
	Admits(client netip.Addr) bool
	// Crash cuts the power.
	Crash()
}

// Server is a boot's API server: one personality at a time, with a real restart of the
// listener between them.
type Server struct {
	*machined.Boot

	host   Host
	port   int // of every machine
	calls  *fault.Log
	faults *fault.Table

	listener  connections
	APIServed chan struct{} // closed when the first API listener is open
	OwnServed chan struct{} // closed when the configured API's listener is open
}

// New is the API server of a boot, which does not serve yet.
func New(b *machined.Boot, host Host, port int, calls *fault.Log, faults *fault.Table) *Server {
	return &Server{
		Boot: b, host: host, port: port, calls: calls, faults: faults,
		APIServed: make(chan struct{}), OwnServed: make(chan struct{}),
	}
}

// connections are those of the listener that serves, and the certificate that it shows.
type connections struct {
	tls atomic.Pointer[tls.Config] // replaced when a configured machine's certificate is renewed

	mu    sync.Mutex
	conns map[string]net.Conn // by remote address, to cut them
}

// Serve serves maintenance mode until there is a complete configuration, and the
// configured API from then until the boot ends.
func (s *Server) Serve(ctx context.Context) {
	if s.InMaintenance() {
		if err := s.serveMaintenance(ctx); err != nil {
			s.World.Logf("%s: maintenance API: %v", s.Name(), err)
		}
	}

	if ctx.Err() != nil {
		return
	}

	if err := s.serveConfigured(ctx); err != nil && ctx.Err() == nil {
		s.World.Logf("%s: configured API: %v", s.Name(), err)
	}
}

func (s *Server) serveMaintenance(ctx context.Context) error {
	conf, err := s.maintenanceTLS()
	if err != nil {
		return err
	}

	until, cancel := context.WithCancel(ctx)
	defer cancel()

	s.Spawn(func(ctx context.Context) {
		defer cancel()

		select {
		case <-s.Configured:
		case <-ctx.Done():
		}
	})

	return s.serve(until, fault.Maintenance, conf)
}

// serveConfigured waits until the machine can have a certificate: workers get theirs
// from a control-plane machine and answer nothing before that.
func (s *Server) serveConfigured(ctx context.Context) error {
	if err := s.World.Await(ctx, func() bool { return s.host.Joined() }); err != nil {
		return err
	}

	var issuer *certs.Authority

	if s.ControlPlane() {
		ca, err := certs.LoadAuthority(s.OSAuthority())
		if err != nil {
			return fmt.Errorf("load Talos CA: %w", err)
		}

		issuer = ca
	} else if err := s.World.Await(ctx, func() bool { issuer = s.host.Trust(); return issuer != nil }); err != nil {
		return err
	}

	conf, err := s.configuredTLS(issuer, 0)
	if err != nil {
		return err
	}

	if err := s.takeOnly(ctx); err != nil {
		return err
	}

	return s.serve(ctx, fault.Configured, conf)
}

// Renew re-issues the certificate after a change of the configuration, without a
// restart: existing connections stay, new handshakes see the new one.
func (s *Server) Renew() error { return s.renew(0) }

// Expire is Renew with a certificate whose time is over.
func (s *Server) Expire() error { return s.renew(-time.Second) }

func (s *Server) renew(validity time.Duration) error {
	if s.listener.tls.Load() == nil {
		return nil
	}

	issuer := s.issuer()
	if issuer == nil {
		return nil
	}

	conf, err := s.configuredTLS(issuer, validity)
	if err != nil {
		return fmt.Errorf("renew API certificate: %w", err)
	}

	s.listener.tls.Store(conf)

	return nil
}

// serve listens until ctx ends, then stops as apid does.
func (s *Server) serve(ctx context.Context, p fault.Personality, conf *tls.Config) error {
	s.listener.tls.Store(conf)

	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}

	dynamic := &tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.listener.tls.Load().Clone(), nil },
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &s.listener.tls.Load().Certificates[0], nil
		},
	}

	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()

	srv := s.newServer(streams, p, dynamic)

	s.Mu.Lock()
	select {
	case <-s.APIServed:
	default:
		close(s.APIServed)
	}

	if p == fault.Configured {
		close(s.OwnServed)
	}
	s.Mu.Unlock()

	served := make(chan error, 1)
	go func() {
		served <- srv.Serve(&trackingListener{Listener: listener, a: &s.listener, admits: s.admits(p), calls: s.calls})
	}()

	select {
	case err := <-served:
		return fmt.Errorf("serve API of %s: %w", s.Name(), err)
	case <-ctx.Done():
	}

	s.stopServer(srv, endStreams)

	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		s.World.Logf("%s: stop API: %v", s.Name(), err)
	}

	return nil
}

// stopServer lets running calls finish, unless the power was cut. Streams are ended first, so that
// what is still to be written gets out on every connection. What is left is cut, connections without
// a handshake too, which gRPC would wait for.
func (s *Server) stopServer(srv *grpc.Server, endStreams context.CancelFunc) {
	if s.PoweredOn() {
		moment := time.AfterFunc(streamStop, endStreams)
		defer moment.Stop()

		late := time.AfterFunc(gracefulStop, s.listener.cut)
		defer late.Stop()

		srv.GracefulStop()
	}

	s.listener.cut()
	srv.Stop()
}

// listen retries while the address is taken, which happens for a moment when the
// previous boot's listener is still closing.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	for {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", s.Endpoint())
		if err == nil {
			return l, nil
		}

		if timing.Pause(ctx, RebindPause) != nil {
			return nil, fmt.Errorf("listen on %s: %w", s.Endpoint(), err)
		}
	}
}

// newServer registers the services Talos registers, behind recording, faults, roles
// and routing. Streams end with their context.
func (s *Server) newServer(streams context.Context, p fault.Personality, conf *tls.Config) *grpc.Server {
	chain := &interceptors{s: s, personality: p, streams: streams}
	srv := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(conf)),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.ReadBufferSize(4<<10),
		grpc.WriteBufferSize(4<<10),
		grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(chain.unary),
		grpc.StreamInterceptor(chain.stream),
	)

	cosi.RegisterStateServer(srv, cosiserver.NewState(s.servedState()))
	s.host.Register(srv, chain.legacyMaintenance())

	return srv
}

// admits filters clients by the firewall: it comes with the configuration, so there is none in maintenance mode.
func (s *Server) admits(p fault.Personality) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		client, err := netip.ParseAddrPort(conn.RemoteAddr().String())

		return p == fault.Maintenance || err == nil && s.host.Admits(client.Addr())
	}
}

// trackingListener counts connections, and remembers them, so that a fault can cut them.
type trackingListener struct {
	net.Listener

	a      *connections
	admits func(net.Conn) bool
	calls  *fault.Log
}

// Accept implements net.Listener.
func (l *trackingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	for ; err == nil && !l.admits(conn); conn, err = l.Listener.Accept() {
		_ = conn.Close() // the client sees it go
	}

	if err != nil {
		return nil, err
	}

	l.calls.Connected()

	tracked := &trackedConn{Conn: conn, a: l.a}

	l.a.mu.Lock()
	defer l.a.mu.Unlock()

	if l.a.conns == nil {
		l.a.conns = map[string]net.Conn{}
	}

	l.a.conns[conn.RemoteAddr().String()] = tracked

	return tracked, nil
}

// cut closes every connection.
func (a *connections) cut() {
	a.mu.Lock()
	conns := slices.Collect(maps.Values(a.conns))
	a.mu.Unlock()

	for _, conn := range conns {
		// The peer sees the connection go; there is nothing to do about an error.
		_ = conn.Close()
	}
}

type trackedConn struct {
	net.Conn

	a *connections
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.a.mu.Lock()
	delete(c.a.conns, c.RemoteAddr().String())
	c.a.mu.Unlock()

	return c.Conn.Close()
}

// cut closes the connection a call came in on.
func (s *Server) cut(ctx context.Context) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}

	s.listener.mu.Lock()
	conn := s.listener.conns[p.Addr.String()]
	s.listener.mu.Unlock()

	if conn != nil {
		// The peer sees the connection go; there is nothing to do about an error.
		_ = conn.Close()
	}
}
