package hosttest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
)

// lastWords is how long a forwarded connection stays that the asker has ended (containerd 2.2,
// cri/server/sandbox_portforward_linux.go).
const lastWords = 500 * time.Millisecond

// serve opens the kubelet's server.
func (n *node) serve() (*httptest.Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.forward)

	return kubelet.Serve(n.ctx, n.address.String(), mux)
}

// forward is what a kubelet and its runtime do (Kubernetes 1.36, kubelet/server/server.go getPortForward and
// cri-streaming, portforward/httpstream.go).
func (n *node) forward(w http.ResponseWriter, req *http.Request) {
	pod, err := n.host.pods.Pods(req.PathValue("namespace")).Get(req.PathValue("pod"))
	if err != nil || pod.Spec.NodeName != n.name {
		http.Error(w, fmt.Sprintf("pod not found: %s/%s", req.PathValue("namespace"), req.PathValue("pod")),
			http.StatusNotFound)

		return
	}

	if _, err := httpstream.Handshake(req, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return // it has answered
	}

	streams := make(chan httpstream.Stream)
	ctx, cancel := context.WithCancel(n.ctx)

	defer cancel()

	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
		select {
		case streams <- s:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if conn == nil {
		return // it has answered
	}

	var work sync.WaitGroup
	defer work.Wait()

	defer func() { _ = conn.Close() }() // the other side may have

	pairs := map[string]*pair{}

	for {
		select {
		case <-ctx.Done():
			return
		case <-conn.CloseChan():
			return
		case s := <-streams:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if pairs[id] == nil {
				pairs[id] = &pair{}
			}

			if p := pairs[id]; p.add(s) {
				delete(pairs, id)
				work.Go(func() { n.pipe(ctx, pod, p); conn.RemoveStreams(p.data, p.errors) })
			}
		}
	}
}

// pair are the streams of one forwarded connection.
type pair struct{ data, errors httpstream.Stream }

// add reports whether there are both of them now.
func (p *pair) add(s httpstream.Stream) bool {
	if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
		p.errors = s
	} else {
		p.data = s
	}

	return p.data != nil && p.errors != nil
}

// pipe connects a pair to a port of the machine in the pod.
func (n *node) pipe(ctx context.Context, pod *corev1.Pod, p *pair) {
	port := p.data.Headers().Get(corev1.PortHeader)

	if err := n.connect(ctx, pod, port, p.data); err != nil {
		// the client may be gone
		_, _ = fmt.Fprintf(p.errors, "error forwarding port %s to pod %s, uid %s: %v", port, pod.Name, pod.UID, err)
		_ = p.data.Reset()
		_ = p.errors.Reset()
	}

	_ = p.data.Close()
	_ = p.errors.Close()
}

func (n *node) connect(ctx context.Context, pod *corev1.Pod, port string, data io.ReadWriter) error {
	m := n.host.Machine(pod.Namespace, pod.Name)

	now, err := n.host.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || now.UID != pod.UID || m == nil || now.Status.PodIP != podAddress(m.Address()).String() {
		return fmt.Errorf("failed to find sandbox %q: not found", pod.UID)
	}

	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q is none", port)
	}

	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort(m.Address().String(), port))
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%s inside namespace %q, IPv4: dial tcp4 127.0.0.1:%s: connect: "+
			"connection refused", port, pod.UID, port)
	}

	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()

	join(ctx, conn, data)

	return nil
}

// join passes on what both sides say until one of them is done.
func join(ctx context.Context, conn net.Conn, data io.ReadWriter) {
	answered := make(chan struct{}) // all that the machine has to say

	go func() {
		defer close(answered)

		_, _ = io.Copy(data, conn)
	}()

	asked := make(chan struct{})

	go func() {
		_, _ = io.Copy(conn, data)

		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite() // the other side may be gone
		}

		close(asked)

		// Unread data that was sent by then blocks other streams, as in real kubelets; in tests that would
		// depend on timing.
		_, _ = io.Copy(io.Discard, data)
	}()

	select {
	case <-answered:
		return
	case <-asked:
	}

	rest := time.NewTimer(lastWords)
	defer rest.Stop()

	select {
	case <-answered:
	case <-rest.C:
	case <-ctx.Done():
	}
}
