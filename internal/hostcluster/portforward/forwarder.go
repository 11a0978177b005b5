// Package portforward makes connections to ports of pods through the Kubernetes API, as `kubectl port-forward` does,
// but without a listener: each is a net.Conn. A pod has one connection to its kubelet, which carries all of its
// forwarded ports.
package portforward

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const (
	// connectTimeout is how long the API may take to connect to a kubelet.
	connectTimeout = 15 * time.Second
	// refusedTime is how long a port with nothing behind it comes after others that do the same.
	refusedTime = 10 * time.Second
)

var errClosed = errors.New("the connection to the host was closed")

// Forwarder forwards ports of pods. It is safe for concurrent use.
type Forwarder struct {
	config *rest.Config
	base   *url.URL
	ctx    context.Context //nolint:containedctx // of connections that several callers share, until Close
	cancel context.CancelCauseFunc

	connecting singleflight.Group

	mu       sync.Mutex
	sessions map[types.UID]*session
	// refused is when a port of a pod last had nothing behind it.
	refused map[podPort]time.Time
}

type podPort struct {
	pod  types.UID
	port string
}

// New returns a Forwarder for the cluster of config. It connects to nothing yet.
func New(config *rest.Config) (*Forwarder, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancelCause(context.Background())

	return &Forwarder{
		config: config, base: base, ctx: ctx, cancel: cancel,
		sessions: map[types.UID]*session{}, refused: map[podPort]time.Time{},
	}, nil
}

// Close ends all connections.
func (f *Forwarder) Close() { f.cancel(errClosed) }

// Dial connects to a port of a pod. A session that turns out to be broken is replaced once. That nothing listens on the
// port shows only when the connection is read or written.
func (f *Forwarder) Dial(ctx context.Context, pod *corev1.Pod, port string) (net.Conn, error) {
	for {
		s, made, err := f.session(ctx, pod)
		if err != nil {
			return nil, err
		}

		conn, err := s.open(ctx, port, func() { f.refuse(podPort{pod.UID, port}) })
		if err == nil || ctx.Err() != nil {
			return conn, err
		}

		s.retire()

		if made {
			return nil, err
		}
	}
}

// Connected reports whether a pod has a session that can be used.
func (f *Forwarder) Connected(pod types.UID) bool { return f.usable(pod) != nil }

func (f *Forwarder) usable(pod types.UID) *session {
	f.mu.Lock()
	defer f.mu.Unlock()

	if s := f.sessions[pod]; s != nil && s.usable() {
		return s
	}

	return nil
}

// session returns the session of a pod; made is true when it is new. All who ask at once wait for the same one, and
// each may give up without taking it from the others.
func (f *Forwarder) session(ctx context.Context, pod *corev1.Pod) (s *session, made bool, err error) {
	if s := f.usable(pod.UID); s != nil {
		return s, false, nil
	}

	connected := f.connecting.DoChan(string(pod.UID), func() (any, error) {
		if s := f.usable(pod.UID); s != nil {
			return s, nil
		}

		return f.connect(pod)
	})

	select {
	case result := <-connected:
		s, _ := result.Val.(*session)

		return s, true, result.Err
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

func (f *Forwarder) connect(pod *corev1.Pod) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(f.ctx, connectTimeout,
		fmt.Errorf("no connection to the pod within %s", connectTimeout))
	defer cancel()

	target := f.base.JoinPath("api/v1/namespaces", pod.Namespace, "pods", pod.Name, "portforward")

	conn, err := connect(ctx, f.config, target)
	if cause := context.Cause(ctx); cause != nil {
		if err == nil {
			_ = conn.Close() // unused
		}

		return nil, cause
	}

	if err != nil {
		return nil, err
	}

	s := newSession("pod "+pod.Namespace+"/"+pod.Name, conn)

	f.mu.Lock()
	f.sessions[pod.UID] = s
	f.mu.Unlock()

	stop := context.AfterFunc(f.ctx, s.close)

	go func() {
		<-conn.CloseChan()
		stop()
		s.close()
		f.forget(pod.UID, s)
	}()

	return s, nil
}

func (f *Forwarder) forget(pod types.UID, s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.sessions[pod] == s {
		delete(f.sessions, pod)
	}
}

func (f *Forwarder) refuse(at podPort) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.refused[at] = time.Now()
}

// Sort puts pods last whose port had nothing behind it a moment ago: that shows only after a connection was given away,
// so the next one has to go elsewhere.
func (f *Forwarder) Sort(pods []*corev1.Pod, port string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	maps.DeleteFunc(f.refused, func(_ podPort, at time.Time) bool { return time.Since(at) > refusedTime })

	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return f.refused[podPort{a.UID, port}].Compare(f.refused[podPort{b.UID, port}])
	})
}
