package hostcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// upgradeTime is how long the host may take to connect to a kubelet.
const upgradeTime = 15 * time.Second

var errClosed = errors.New("the host was closed")

// forwards are the connections to pods through the host's API, one for each pod: a stream costs two frames, a
// connection two handshakes of TLS and one more between the host and its kubelet.
type forwards struct {
	upgrader *upgrader
	ctx      context.Context //nolint:containedctx // of what is shared by several callers, until close
	end      context.CancelCauseFunc

	mu   sync.Mutex
	pods map[types.UID]*attempt
	// refused is when a port of a pod was last found without anything behind it.
	refused map[podPort]time.Time
}

type podPort struct {
	pod  types.UID
	port string
}

// refusedTime is how long a port that nothing was behind is tried after others that do the same.
const refusedTime = 10 * time.Second

// attempt is a connection that is there, or is being made.
type attempt struct {
	done    chan struct{}
	session *session
	err     error
}

func newForwards(w ways) *forwards {
	ctx, end := context.WithCancelCause(context.Background())

	return &forwards{upgrader: &upgrader{ways: w}, ctx: ctx, end: end, pods: map[types.UID]*attempt{}, refused: map[podPort]time.Time{}}
}

// dial makes a connection to a port of a pod. A connection to the pod that turns out to be broken is replaced once.
func (f *forwards) dial(ctx context.Context, pod *corev1.Pod, port string) (net.Conn, error) {
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

// session returns the connection to a pod; made is true when it is new.
func (f *forwards) session(ctx context.Context, pod *corev1.Pod) (s *session, made bool, err error) {
	a, made := f.attempt(pod)

	select {
	case <-a.done:
		return a.session, made, a.err
	case <-ctx.Done():
		return nil, made, context.Cause(ctx)
	}
}

// attempt finds or begins one. Whoever waits for it may give up without taking it from the others.
func (f *forwards) attempt(pod *corev1.Pod) (a *attempt, made bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if a := f.pods[pod.UID]; a != nil && a.useful() {
		return a, false
	}

	a = &attempt{done: make(chan struct{})}
	f.pods[pod.UID] = a

	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}

	go func() {
		defer close(a.done)

		if a.session, a.err = f.connect(name); a.err != nil {
			f.forget(pod.UID, a)

			return
		}

		stop := context.AfterFunc(f.ctx, a.session.close)

		go func() {
			<-a.session.spdy.CloseChan()
			stop()
			f.forget(pod.UID, a)
		}()
	}()

	return a, true
}

// has says whether there is a connection to a pod, or one is being made.
func (f *forwards) has(pod *corev1.Pod) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	a := f.pods[pod.UID]

	return a != nil && a.useful()
}

// useful says whether to wait for an attempt, or use what came of it.
func (a *attempt) useful() bool {
	select {
	case <-a.done:
		return a.err == nil && a.session.usable()
	default:
		return true
	}
}

func (f *forwards) connect(pod types.NamespacedName) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(f.ctx, upgradeTime, fmt.Errorf("no connection to the pod within %s", upgradeTime))
	defer cancel()

	conn, err := f.upgrader.connect(ctx, pod)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}

		return nil, err
	}

	return newSession("pod "+pod.String(), conn)
}

// forget drops an attempt that came to nothing, or whose connection has ended.
func (f *forwards) forget(pod types.UID, a *attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.pods[pod] == a {
		delete(f.pods, pod)
	}
}

func (f *forwards) refuse(at podPort) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.refused[at] = time.Now()
}

// sorted puts pods behind whose port nothing was a moment ago last: that a connection failed shows only after it was given away, so that the
// next one has to go elsewhere.
func (f *forwards) sorted(pods []*corev1.Pod, port string) []*corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()

	maps.DeleteFunc(f.refused, func(_ podPort, at time.Time) bool { return time.Since(at) > refusedTime })

	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return f.refused[podPort{a.UID, port}].Compare(f.refused[podPort{b.UID, port}])
	})

	return pods
}

// close ends all connections.
func (f *forwards) close() { f.end(errClosed) }
