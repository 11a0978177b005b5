package hostcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/moby/spdystream"
	corev1 "k8s.io/api/core/v1"
)

const (
	// pingPeriod is how often a connection to a pod shows that it lives, and pingTime how long it may take to: one whose
	// other end is gone without a word would else be used until TCP gives up after minutes.
	pingPeriod = 10 * time.Second
	pingTime   = 10 * time.Second
	// streamTime is how long a kubelet may take to accept a stream.
	streamTime = 10 * time.Second
	// glance is the time between two looks at the context of who waits for a stream.
	glance = 50 * time.Millisecond
)

// errLost is why streams end when the connection they are on does.
var errLost = errors.New("the connection to the host was lost")

// session is one connection to a pod. It is used for any number of streams, and ends when it is retired and the last of them
// ends, or when it breaks.
type session struct {
	name string
	conn net.Conn
	spdy *spdystream.Connection

	mu       sync.Mutex
	requests int
	streams  int
	retired  bool
}

// newSession takes over the connection. What runs in the background ends with it.
func newSession(name string, conn net.Conn) (*session, error) {
	spdy, err := spdystream.NewConnection(conn, false)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	s := &session{name: name, conn: conn, spdy: spdy}

	// Kubelets begin no streams.
	go spdy.Serve(func(stream *spdystream.Stream) { _ = stream.Refuse() })
	go s.watch()

	return s, nil
}

// watch ends a connection that does not answer any more.
func (s *session) watch() {
	ticker := time.NewTicker(pingPeriod)
	defer ticker.Stop()
	defer s.close()

	for {
		select {
		case <-s.spdy.CloseChan():
			return
		case <-ticker.C:
		}

		answer := make(chan error, 1)

		go func() {
			_, err := s.spdy.Ping()
			answer <- err
		}()

		select {
		case err := <-answer:
			if err != nil {
				return
			}
		case <-time.After(pingTime):
			return
		}
	}
}

// close ends the connection and everything on it. The streams are told by its end; an error of
// closing what is given up says nothing.
func (s *session) close() { _ = s.conn.Close() }

// retire takes the connection out of use: it goes with its last stream. What goes through it now goes on.
func (s *session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.retired = true
	s.closeIfUnused()
}

// released is called when a stream is done.
func (s *session) released() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.streams--
	s.closeIfUnused()
}

func (s *session) closeIfUnused() {
	if s.retired && s.streams == 0 {
		s.close()
	}
}

// usable says whether streams can be made. It is false for good once it is false.
func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return !s.retired && !isClosed(s.spdy.CloseChan())
}

// begin counts a stream, and gives it the number that ties its two halves together.
func (s *session) begin() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.retired {
		return 0, errLost
	}

	s.requests++
	s.streams++

	return s.requests, nil
}

// open makes a connection to a port of the pod. Whether anything listens there is not known when it returns: a kubelet says no more than
// that something went wrong, later, which the function is told of.
func (s *session) open(ctx context.Context, port string, refused func()) (net.Conn, error) {
	request, err := s.begin()
	if err != nil {
		return nil, err
	}

	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(request))

	failed, err := s.stream(ctx, headers, corev1.StreamTypeError)
	if err == nil {
		// Nothing is written to it (client-go 0.36, tools/portforward handleConnection).
		err = failed.Close()
	}

	var data *spdystream.Stream
	if err == nil {
		data, err = s.stream(ctx, headers, corev1.StreamTypeData)
	}

	if err != nil {
		if failed != nil {
			_ = failed.Reset() // of a connection that is broken, or a request that is given up
		}

		s.released()

		return nil, err
	}

	return newForwarded(s, port, data, failed, refused), nil
}

// stream makes one and waits for the kubelet to accept it.
func (s *session) stream(ctx context.Context, headers http.Header, kind string) (*spdystream.Stream, error) {
	headers = headers.Clone()
	headers.Set(corev1.StreamType, kind)

	stream, err := s.spdy.CreateStream(headers, nil, false)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}

	for begun := time.Now(); ; {
		err := stream.WaitTimeout(glance)
		if err == nil {
			return stream, nil
		}

		switch {
		case !errors.Is(err, spdystream.ErrTimeout):
			err = fmt.Errorf("%w: %w", errLost, err)
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case isClosed(s.spdy.CloseChan()):
			err = errLost
		case time.Since(begun) > streamTime:
			err = fmt.Errorf("%w: no stream was accepted within %s", errLost, streamTime)
		default:
			continue
		}

		_ = stream.Reset() // it is given up

		return nil, err
	}
}

func isClosed(c <-chan bool) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
