package hostcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// The words of the protocol (Kubernetes 1.36, apimachinery/pkg/util/portforward and streaming/pkg/httpstream).
const (
	forwardProtocol = portforward.PortForwardProtocolV1Name
	tunnelProtocol  = "SPDY/3.1+" + forwardProtocol
	spdyProtocol    = "SPDY/3.1"
)

// upgrader opens connections to pods that streams can be made on: to the host's API, which hands them on to the kubelet.
//
// The streams are SPDY's in either case. First they are tunnelled through a WebSocket, which balancers and gateways in front of
// an API server let pass; where that is refused, SPDY itself is tried. So does kubectl since 1.31. What servers before 1.30
// have instead, and users who may create but not get pods/portforward, make the fallback needed, not just courtesy.
type upgrader struct {
	ways ways
	// plain is true once SPDY was accepted where a WebSocket was not.
	plain atomic.Bool
}

// refusedError is an answer other than a changed protocol.
type refusedError struct{ error }

func (r refusedError) Unwrap() error { return r.error }

func (u *upgrader) connect(ctx context.Context, pod types.NamespacedName) (net.Conn, error) {
	target := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s/portforward", u.ways.base, url.PathEscape(pod.Namespace), url.PathEscape(pod.Name))

	if !u.plain.Load() {
		conn, err := u.tunnel(ctx, target)

		var refused refusedError
		if err == nil || !errors.As(err, &refused) {
			return conn, err
		}
	}

	conn, err := u.speakSPDY(ctx, target)
	if err == nil {
		u.plain.Store(true)
	}

	return conn, err
}

// tunnel opens a WebSocket.
func (u *upgrader) tunnel(ctx context.Context, target string) (net.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}

	way, err := kubernetes.Authenticate(u.ways.config, roundTripper(func(r *http.Request) (*http.Response, error) {
		dialer := websocket.Dialer{
			NetDialContext: u.ways.dial, Proxy: u.ways.proxy, TLSClientConfig: u.ways.tls.Clone(),
			Subprotocols: []string{tunnelProtocol}, ReadBufferSize: frameSize, WriteBufferSize: frameSize,
		}
		address := *r.URL
		address.Scheme = strings.Replace(address.Scheme, "http", "ws", 1)

		made, response, err := dialer.DialContext(r.Context(), address.String(), r.Header)
		if err != nil {
			if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
				err = refusal(response)
			}

			return nil, err
		}

		// Whoever gives up waiting for it closes the answer.
		response.Body = tunnelBody{made}

		return response, nil
	}))
	if err != nil {
		return nil, err
	}

	response, err := way.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	conn, err := tunnelOf(response)
	if err != nil {
		return nil, err
	}

	if conn.Subprotocol() != tunnelProtocol {
		_ = conn.Close() // nothing was sent on it

		return nil, refusedError{fmt.Errorf("the host offers no %s", tunnelProtocol)}
	}

	return portforward.NewTunnelingConnection("talosop", conn), nil
}

// tunnelBody is the answer that made a WebSocket.
type tunnelBody struct{ *websocket.Conn }

// Read implements io.Reader: there is nothing.
func (tunnelBody) Read([]byte) (int, error) { return 0, io.EOF }

func tunnelOf(response *http.Response) (*websocket.Conn, error) {
	if body, ok := response.Body.(tunnelBody); ok {
		return body.Conn, nil
	}

	return nil, errors.Join(errors.New("no WebSocket was made"), response.Body.Close())
}

// frameSize is that of WebSocket buffers; a stream's chunk and its header fit in.
const frameSize = chunkSize + 1024

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// speakSPDY changes the protocol of an HTTP connection.
func (u *upgrader) speakSPDY(ctx context.Context, target string) (net.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return nil, err
	}

	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", spdyProtocol)
	request.Header.Set("X-Stream-Protocol-Version", forwardProtocol)

	response, err := u.ways.upgrades.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	body, both := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !both || !strings.EqualFold(response.Header.Get("Upgrade"), spdyProtocol) {
		return nil, refusal(response)
	}

	return upgraded{ReadWriteCloser: body}, nil
}

// refusal is what a host says that does not change the protocol. It closes the answer.
func refusal(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	_ = response.Body.Close() // read as far as it is of use

	if err != nil {
		return refusedError{fmt.Errorf("%s, and then %w", response.Status, err)}
	}

	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" {
		return refusedError{&apierrors.StatusError{ErrStatus: status}}
	}

	text := strings.Join(slices.Collect(strings.FieldsSeq(string(body))), " ")
	if len(text) > 300 {
		text = text[:300] + "…"
	}

	return refusedError{&apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(response.StatusCode), Message: strings.TrimSpace(response.Status + " " + text), //nolint:gosec // of three digits
	}}}
}

// upgraded is a connection that net/http has handed over. SPDY only reads, writes and closes it (moby/spdystream
// 0.5, connection.go); deadlines are those of the streams on it.
type upgraded struct {
	io.ReadWriteCloser
	net.Conn
}

// Read implements net.Conn.
func (u upgraded) Read(p []byte) (int, error) { return u.ReadWriteCloser.Read(p) }

// Write implements net.Conn.
func (u upgraded) Write(p []byte) (int, error) { return u.ReadWriteCloser.Write(p) }

// Close implements net.Conn.
func (u upgraded) Close() error { return u.ReadWriteCloser.Close() }
