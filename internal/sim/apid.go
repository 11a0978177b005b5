package sim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	cosiserver "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	clusterapi "github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// A listener that is replaced lets calls finish, as Talos does, which waits ten seconds
// for all of them. What matters is that answers get out, such as that to
// ApplyConfiguration: streams, which may go on for ever, get a moment only.
const (
	gracefulStop = 5 * time.Second
	streamStop   = 100 * time.Millisecond
)

// rebindPause is the pause before another attempt to listen on the machine's address.
const rebindPause = 20 * time.Millisecond

// apid is a boot's API server: one personality at a time, with a real restart of the
// listener between them.
type apid struct {
	tls atomic.Pointer[tls.Config] // replaced when a configured machine's certificate is renewed

	Mu    sync.Mutex
	conns map[string]net.Conn // by remote address, to cut them
}

// api implements the services; it belongs to one boot.
type api struct {
	machine.UnimplementedMachineServiceServer
	clusterapi.UnimplementedClusterServiceServer

	b *boot
}

// serveAPI serves maintenance mode until there is a complete configuration, and the
// configured API from then until the boot ends.
func (b *boot) serveAPI(ctx context.Context) {
	if b.InMaintenance() {
		if err := b.serveMaintenance(ctx); err != nil {
			b.World.Logf("%s: maintenance API: %v", b.m.Name(), err)
		}
	}

	if ctx.Err() != nil {
		return
	}

	if err := b.serveConfigured(ctx); err != nil && ctx.Err() == nil {
		b.World.Logf("%s: configured API: %v", b.m.Name(), err)
	}
}

func (b *boot) serveMaintenance(ctx context.Context) error {
	conf, err := b.maintenanceTLS()
	if err != nil {
		return err
	}

	until, cancel := context.WithCancel(ctx)
	defer cancel()

	b.Spawn(func(ctx context.Context) {
		defer cancel()

		select {
		case <-b.Configured:
		case <-ctx.Done():
		}
	})

	return b.serve(until, fault.Maintenance, conf)
}

// serveConfigured waits until the machine can have a certificate: workers get theirs
// from a control-plane machine and answer nothing before that.
func (b *boot) serveConfigured(ctx context.Context) error {
	if err := b.World.Await(ctx, func() bool { return b.cluster != nil }); err != nil {
		return err
	}

	var issuer *certs.Authority

	if b.ControlPlane() {
		ca, err := certs.LoadAuthority(b.OSAuthority())
		if err != nil {
			return fmt.Errorf("load Talos CA: %w", err)
		}

		issuer = ca
	} else if err := b.World.Await(ctx, func() bool { issuer = b.cluster.trustFor(b); return issuer != nil }); err != nil {
		return err
	}

	conf, err := b.configuredTLS(issuer)
	if err != nil {
		return err
	}

	return b.serve(ctx, fault.Configured, conf)
}

// Renew re-issues the certificate after a change of the configuration, without a
// restart: existing connections stay, new handshakes see the new one.
func (a *apid) Renew(b *boot) error {
	if a.tls.Load() == nil {
		return nil
	}

	issuer := b.issuer()
	if issuer == nil {
		return nil
	}

	conf, err := b.configuredTLS(issuer)
	if err != nil {
		return fmt.Errorf("renew API certificate: %w", err)
	}

	a.tls.Store(conf)

	return nil
}

// serve listens until ctx ends, then stops as apid does.
func (b *boot) serve(ctx context.Context, p fault.Personality, conf *tls.Config) error {
	b.server.tls.Store(conf)

	listener, err := b.listen(ctx)
	if err != nil {
		return err
	}

	dynamic := &tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return b.server.tls.Load().Clone(), nil },
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &b.server.tls.Load().Certificates[0], nil
		},
	}

	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()

	srv := b.newServer(streams, p, dynamic)

	b.Mu.Lock()
	select {
	case <-b.apiServed:
	default:
		close(b.apiServed)
	}

	if p == fault.Configured {
		close(b.ownServed)
	}
	b.Mu.Unlock()

	served := make(chan error, 1)
	go func() { served <- srv.Serve(&trackingListener{Listener: listener, a: &b.server}) }()

	select {
	case err := <-served:
		return fmt.Errorf("serve API of %s: %w", b.m.Name(), err)
	case <-ctx.Done():
	}

	b.stopServer(srv, endStreams)

	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		b.World.Logf("%s: stop API: %v", b.m.Name(), err)
	}

	return nil
}

// stopServer lets running calls finish, unless the power was cut. Streams are ended first, so that
// what is still to be written gets out on every connection. What is left is cut, connections without
// a handshake too, which gRPC would wait for.
func (b *boot) stopServer(srv *grpc.Server, endStreams context.CancelFunc) {
	if b.PoweredOn() {
		moment := time.AfterFunc(streamStop, endStreams)
		defer moment.Stop()

		late := time.AfterFunc(gracefulStop, b.server.cut)
		defer late.Stop()

		srv.GracefulStop()
	}

	b.server.cut()
	srv.Stop()
}

// listen retries while the address is taken, which happens for a moment when the
// previous boot's listener is still closing.
func (b *boot) listen(ctx context.Context) (net.Listener, error) {
	for {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", b.m.Endpoint())
		if err == nil {
			return l, nil
		}

		if timing.Pause(ctx, rebindPause) != nil {
			return nil, fmt.Errorf("listen on %s: %w", b.m.Endpoint(), err)
		}
	}
}

// newServer registers the services Talos registers, behind recording, faults, roles
// and routing. Streams end with their context.
func (b *boot) newServer(streams context.Context, p fault.Personality, conf *tls.Config) *grpc.Server {
	chain := &interceptors{b: b, personality: p, streams: streams}
	srv := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(conf)),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.ReadBufferSize(4<<10),
		grpc.WriteBufferSize(4<<10),
		grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(chain.unary),
		grpc.StreamInterceptor(chain.stream),
	)

	a := &api{b: b}
	machine.RegisterMachineServiceServer(srv, a)
	storage.RegisterStorageServiceServer(srv, &storageServer{b: b})
	cosi.RegisterStateServer(srv, cosiserver.NewState(b.servedState()))

	if chain.legacyMaintenance() {
		return srv
	}

	machine.RegisterImageServiceServer(srv, &imageServer{b: b})
	machine.RegisterLifecycleServiceServer(srv, &lifecycleServer{b: b})
	machine.RegisterDebugServiceServer(srv, machine.UnimplementedDebugServiceServer{})
	clusterapi.RegisterClusterServiceServer(srv, a)
	timeapi.RegisterTimeServiceServer(srv, &timeServer{})

	return srv
}

// trackingListener remembers connections, so that a fault can cut them.
type trackingListener struct {
	net.Listener

	a *apid
}

// Accept implements net.Listener.
func (l *trackingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}

	tracked := &trackedConn{Conn: conn, a: l.a}

	l.a.Mu.Lock()
	defer l.a.Mu.Unlock()

	if l.a.conns == nil {
		l.a.conns = map[string]net.Conn{}
	}

	l.a.conns[conn.RemoteAddr().String()] = tracked

	return tracked, nil
}

// cut closes every connection.
func (a *apid) cut() {
	a.Mu.Lock()
	conns := slices.Collect(maps.Values(a.conns))
	a.Mu.Unlock()

	for _, conn := range conns {
		// The peer sees the connection go; there is nothing to do about an error.
		_ = conn.Close()
	}
}

type trackedConn struct {
	net.Conn

	a *apid
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.a.Mu.Lock()
	delete(c.a.conns, c.RemoteAddr().String())
	c.a.Mu.Unlock()

	return c.Conn.Close()
}

// cut closes the connection a call came in on.
func (b *boot) cut(ctx context.Context) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}

	b.server.Mu.Lock()
	conn := b.server.conns[p.Addr.String()]
	b.server.Mu.Unlock()

	if conn != nil {
		// The peer sees the connection go; there is nothing to do about an error.
		_ = conn.Close()
	}
}
