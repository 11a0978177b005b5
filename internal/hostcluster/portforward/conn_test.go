package portforward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// farEnd is the other side of a session: a kubelet that gives each data stream away.
type farEnd struct {
	session *session
	streams chan httpstream.Stream
	errs    chan httpstream.Stream
}

func newFarEnd(t *testing.T) *farEnd {
	t.Helper()

	here, there := net.Pipe()
	f := &farEnd{session: sessionOn(t, here), streams: make(chan httpstream.Stream, 10),
		errs: make(chan httpstream.Stream, 10)}

	server, err := spdy.NewServerConnection(there, func(stream httpstream.Stream, _ <-chan struct{}) error {
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
			f.streams <- stream
		} else {
			f.errs <- stream
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = server.Close() })

	return f
}

// sessionOn is a session as connectWebSocket makes it.
func sessionOn(t *testing.T, conn net.Conn) *session {
	t.Helper()

	streams, err := spdy.NewClientConnectionWithPings(liveConn{conn}, portforward.PingPeriod)
	if err != nil {
		t.Fatal(err)
	}

	s := newSession("pod p/dev-cp-0-0", streams)

	t.Cleanup(func() {
		s.close()
		_ = conn.Close()
	})

	return s
}

func (f *farEnd) open(t *testing.T) (opened *conn, data, failure httpstream.Stream) {
	t.Helper()

	c, err := f.session.open(t.Context(), "50000", func() {})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = c.Close() })

	opened, ok := c.(*conn)
	if !ok {
		t.Fatalf("%T", c)
	}

	return opened, <-f.streams, <-f.errs
}

func isClosed(c <-chan bool) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Deadlines end pending reads and writes, and only those; what was not read then is read later.
func TestConn_deadlinesEndReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, data, _ := f.open(t)

		begun := time.Now()
		if err := conn.SetReadDeadline(begun.Add(time.Minute)); err != nil {
			t.Error(err)
		}

		_, err := conn.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("a read ended after %s with %v", time.Since(begun), err)
		}

		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no timeout", err)
		}

		// Moved during a read.
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			t.Error(err)
		}

		go func() {
			<-time.After(time.Second)

			_ = conn.SetReadDeadline(time.Now())
		}()

		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read whose deadline was moved ended with %v", err)
		}

		if err := conn.SetDeadline(time.Time{}); err != nil {
			t.Error(err)
		}

		go func() { _, _ = data.Write([]byte("ab")) }()

		for _, want := range "ab" {
			one := make([]byte, 1)
			if n, err := conn.Read(one); n != 1 || err != nil || rune(one[0]) != want {
				t.Errorf("read %q, %v, want %q", one[:n], err, want)
			}
		}
	})
}

// A far end that takes nothing more is no reason to write for ever. What was taken before is written, once, and before
// what comes after it.
func TestConn_writesGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, data, _ := f.open(t)

		if err := conn.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Error(err)
		}

		all := []byte{}

		var err error
		for i := 0; err == nil; i++ {
			chunk := bytes.Repeat([]byte{byte('a' + i%26)}, 32<<10)

			var n int
			n, err = conn.Write(chunk)
			all = append(all, chunk[:n]...)
		}

		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("writing ended with %v", err)
		}

		if err := conn.SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}

		go func() {
			if _, err := conn.Write([]byte("z")); err != nil {
				t.Error(err)
			}

			if err := conn.CloseWrite(); err != nil {
				t.Error(err)
			}
		}()

		got, err := io.ReadAll(data)
		if err != nil || !bytes.Equal(got, append(all, 'z')) {
			t.Errorf("%d bytes came, %v, want %d", len(got), err, len(all)+1)
		}
	})
}

// The kubelet's message is the error of reads and writes, and the next connection to the pod starts fresh.
func TestConn_tellsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, data, failed := f.open(t)
		other, others, _ := f.open(t)

		go func() { _, _ = io.Copy(io.Discard, others) }()

		_ = data.Close()

		if _, err := failed.Write([]byte("dial tcp4 127.0.0.1:50000:\n connection refused")); err != nil {
			t.Error(err)
		}

		_ = failed.Close()

		const want = "forward tcp pod p/dev-cp-0-0:50000: dial tcp4 127.0.0.1:50000: connection refused"
		if _, err := conn.Read(make([]byte, 1)); err == nil || err.Error() != want {
			t.Errorf("reading gives %v, want %s", err, want)
		}

		if _, err := conn.Write([]byte("a")); err == nil || err.Error() != want {
			t.Errorf("writing gives %v, want %s", err, want)
		}

		if f.session.usable() {
			t.Error("the connection to the pod is used again")
		}

		if _, err := other.Write([]byte("a")); err != nil {
			t.Errorf("another connection to the pod: %v", err)
		}

		_, _ = conn.Close(), other.Close()

		synctest.Wait()

		if !isClosed(f.session.conn.CloseChan()) {
			t.Error("the connection to the pod outlives its last stream")
		}
	})
}

// An end that says nothing is the end, and one that is closed here says so.
func TestConn_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, data, failed := f.open(t)

		go func() {
			_, _ = data.Write([]byte("last words"))
			_ = data.Close()
			_ = failed.Close()
		}()

		if got, err := io.ReadAll(conn); err != nil || string(got) != "last words" {
			t.Errorf("read %q, %v", got, err)
		}

		closed, _, _ := f.open(t)

		var work sync.WaitGroup

		work.Go(func() {
			if _, err := closed.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("reading ended with %v", err)
			}
		})
		synctest.Wait()

		if err := closed.Close(); err != nil {
			t.Error(err)
		}

		work.Wait()

		if _, err := closed.Write([]byte("a")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("writing gives %v", err)
		}

		if err := closed.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a deadline gives %v", err)
		}
	})
}

// When the kubelet ends its data, the whole connection ends. Data sent afterwards would never be read and would
// block other connections to the pod.
func TestConn_writesNothingAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, data, failed := f.open(t)

		_ = data.Close()
		_ = failed.Close()

		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}

		if _, err := conn.Write([]byte("still there?")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("writing gives %v", err)
		}

		if err := conn.Close(); err != nil {
			t.Error(err)
		}

		if got, err := io.ReadAll(data); err != nil || len(got) > 0 {
			t.Errorf("after its end the kubelet was sent %q, %v", got, err)
		}
	})
}

// A silent loss of the far end is noticed, and no caller keeps waiting.
func TestSession_noticesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, _, _ := f.open(t)

		// As if a cable were pulled.
		pulled, silent := net.Pipe()
		s := sessionOn(t, pulled)

		go func() { _, _ = io.Copy(io.Discard, silent) }()

		begun := time.Now()

		if _, err := s.open(t.Context(), "50000", func() {}); !errors.Is(err, errLost) || time.Since(begun) > time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		begun = time.Now()
		if _, err := s.open(ctx, "50000", func() {}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errLost) ||
			time.Since(begun) > 2*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}

		<-time.After(silenceTimeout + time.Second)
		synctest.Wait()

		if !isClosed(s.conn.CloseChan()) {
			t.Error("nothing was noticed")
		}

		// The one that answers lives.
		if isClosed(f.session.conn.CloseChan()) {
			t.Error("the connection that is answered was ended")
		}

		f.session.close()

		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, errLost) {
			t.Errorf("reading ends with %v", err)
		}

		<-time.After(time.Minute) // client-go waits 30 s for a stream to be accepted
	})
}
