package portforward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	streamspdy "k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

const (
	protocol = portforward.PortForwardProtocolV1Name
	// tunnelProtocol is SPDY in a WebSocket (apimachinery 0.36, pkg/util/portforward).
	tunnelProtocol = "SPDY/3.1+" + protocol
	// silenceTimeout ends a connection on which nothing is heard, not even answers to pings: TCP alone gives up after a
	// quarter of an hour.
	silenceTimeout = 2 * portforward.PingPeriod
	// streamTimeout is how long a kubelet may take to accept a stream.
	streamTimeout = 10 * time.Second
)

// errLost is why streams end when the connection they are on does.
var errLost = errors.New("the connection to the host was lost")

// connect opens a connection that streams can be made on. Like kubectl since 1.31 it tries a WebSocket, which balancers
// and gateways in front of an API server let pass, then SPDY: for servers before 1.30, and for users who may create but
// not get pods/portforward.
func connect(ctx context.Context, config *rest.Config, target *url.URL) (httpstream.Connection, error) {
	conn, err := connectWebSocket(ctx, config, target)
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		return connectSPDY(ctx, config, target)
	}

	return conn, err
}

// connectWebSocket is client-go's portforward.NewSPDYOverWebsocketDialerForStreaming with a context. It also ends
// silent connections: client-go sends pings, but does not check for their answers.
func connectWebSocket(ctx context.Context, config *rest.Config, target *url.URL) (httpstream.Connection, error) {
	transport, holder, err := websocket.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}

	conn, err := websocket.Negotiate(transport, holder, request, tunnelProtocol)
	if err != nil {
		return nil, err
	}

	tunnel := liveConn{portforward.NewTunnelingConnection("talosop", conn)}

	return streamspdy.NewClientConnectionWithPings(tunnel, portforward.PingPeriod)
}

func connectSPDY(ctx context.Context, config *rest.Config, target *url.URL) (httpstream.Connection, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), nil)
	if err != nil {
		return nil, err
	}

	// The transport adds credentials to every request.
	client := &http.Client{Transport: redirect.Refusing{RoundTripper: transport}}
	conn, _, err := spdy.NegotiateStreaming(upgrader, client, request, protocol)

	return conn, err
}

// liveConn is a connection that ends when nothing comes for a while.
type liveConn struct{ net.Conn }

func (c liveConn) Read(p []byte) (int, error) {
	err := c.SetReadDeadline(time.Now().Add(silenceTimeout))
	if err != nil {
		return 0, err
	}

	n, err := c.Conn.Read(p)
	if err != nil {
		_ = c.Close() // also what is being written ends
	}

	return n, err
}

// session is one connection to a pod for any number of streams. It ends when it is retired and the last of them ends,
// or when it breaks.
type session struct {
	name string
	conn httpstream.Connection

	mu        sync.Mutex
	requests  int
	streaming int
	retired   bool
	closed    bool
}

func newSession(name string, conn httpstream.Connection) *session {
	return &session{name: name, conn: conn}
}

// close ends the session and all of its streams.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()

	_ = s.conn.Close() // of a connection that may have broken
}

// retire allows no new streams.
func (s *session) retire() {
	s.mu.Lock()
	s.retired = true
	unused := s.streaming == 0
	s.mu.Unlock()

	if unused {
		s.close()
	}
}

func (s *session) released() {
	s.mu.Lock()
	s.streaming--
	unused := s.retired && s.streaming == 0
	s.mu.Unlock()

	if unused {
		s.close()
	}
}

func (s *session) usable() bool {
	s.mu.Lock()
	retired := s.retired
	s.mu.Unlock()

	return !retired && !s.lost()
}

func (s *session) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	select {
	case <-s.conn.CloseChan():
		return true
	default:
		return s.closed
	}
}

// open begins the two streams of a connection to a port. refused is called when nothing turns out to be behind it.
func (s *session) open(ctx context.Context, port string, refused func()) (net.Conn, error) {
	headers, err := s.begin(port)
	if err != nil {
		return nil, err
	}

	type result struct {
		conn *conn
		err  error
	}

	made := make(chan result, 1)

	go func() {
		data, failure, err := s.streams(headers)
		if err != nil {
			s.released()

			made <- result{err: fmt.Errorf("%w: %w", errLost, err)}

			return
		}

		made <- result{conn: newConn(s, port, data, failure, refused)}
	}()

	timeout := time.NewTimer(streamTimeout)
	defer timeout.Stop()

	select {
	case r := <-made:
		if r.err != nil {
			return nil, r.err
		}

		return r.conn, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-s.conn.CloseChan():
		err = errLost
	case <-timeout.C:
		err = fmt.Errorf("%w: no stream accepted within %s", errLost, streamTimeout)
	}

	go func() {
		if r := <-made; r.err == nil {
			_ = r.conn.Close() // it is given up
		}
	}()

	return nil, err
}

func (s *session) begin(port string) (http.Header, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.retired {
		return nil, errLost
	}

	s.requests++
	s.streaming++

	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(s.requests))

	return headers, nil
}

// streams creates them in the order of client-go's portforward (0.36, handleConnection).
func (s *session) streams(headers http.Header) (data, failure httpstream.Stream, err error) {
	headers.Set(corev1.StreamType, corev1.StreamTypeError)

	failure, err = s.conn.CreateStream(headers.Clone())
	if err != nil {
		return nil, nil, err
	}

	_ = failure.Close() // nothing is written to it

	headers.Set(corev1.StreamType, corev1.StreamTypeData)

	data, err = s.conn.CreateStream(headers.Clone())
	if err != nil {
		_ = failure.Reset() // of a connection that is broken
		s.conn.RemoveStreams(failure)
	}

	return data, failure, err
}
