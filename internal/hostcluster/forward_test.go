package hostcluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moby/spdystream"
	corev1 "k8s.io/api/core/v1"
)

// farEnd is the other side of a session: a kubelet that gives each data stream away.
type farEnd struct {
	session *session
	streams chan *spdystream.Stream
	errs    chan *spdystream.Stream
}

func newFarEnd(t *testing.T) *farEnd {
	t.Helper()

	here, there := net.Pipe()
	f := &farEnd{streams: make(chan *spdystream.Stream, 10), errs: make(chan *spdystream.Stream, 10)}

	server, err := spdystream.NewConnection(there, true)
	if err != nil {
		t.Fatal(err)
	}

	go server.Serve(func(stream *spdystream.Stream) {
		if err := stream.SendReply(http.Header{}, false); err != nil {
			return
		}

		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
			f.streams <- stream
		} else {
			f.errs <- stream
		}
	})

	if f.session, err = newSession("pod p/dev-cp-0-0", here); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		f.session.close()
		_ = there.Close()
	})

	return f
}

func (f *farEnd) open(t *testing.T) (conn *forwarded, data, failed *spdystream.Stream) {
	t.Helper()

	c, err := f.session.open(t.Context(), "50000", func() {})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = c.Close() })

	conn, ok := c.(*forwarded)
	if !ok {
		t.Fatalf("%T", c)
	}

	return conn, <-f.streams, <-f.errs
}

// Deadlines end reads and writes that are under way, and only those; what was not read then is read later.
func TestForwardedDeadlines(t *testing.T) {
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

		// Moved while somebody reads.
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

// A far end that takes nothing more is no reason to write for ever. What was given up is written all the same, once, and before
// what comes after it.
func TestForwardedWritesGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, data, _ := f.open(t)

		if err := conn.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Error(err)
		}

		sent, all := 0, []byte{}

		var err error
		for err == nil {
			chunk := bytes.Repeat([]byte{byte('a' + sent%26)}, chunkSize)
			all = append(all, chunk...)
			_, err = conn.Write(chunk)
			sent++
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

// What the kubelet says is the error of both ways, and the next connection to the pod begins anew.
func TestForwardedTellsTheReason(t *testing.T) {
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

		if !isClosed(f.session.spdy.CloseChan()) {
			t.Error("the connection to the pod outlives its last stream")
		}
	})
}

// An end that says nothing is the end, and one that is closed here says so.
func TestForwardedEnds(t *testing.T) {
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

// The end of what comes from the kubelet is the end of the whole way: what is sent to it afterwards nobody takes, which would hold up other
// connections to the pod.
func TestForwardedWritesNothingAfterTheEnd(t *testing.T) {
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

// A far end that went without a word is noticed, and nobody is left waiting.
func TestSessionNoticesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarEnd(t)
		conn, _, _ := f.open(t)

		// As if a cable were pulled.
		pulled, silent := net.Pipe()
		s, err := newSession("pod p/dev-cp-0-0", pulled)
		if err != nil {
			t.Fatal(err)
		}

		go func() { _, _ = io.Copy(io.Discard, silent) }()

		begun := time.Now()

		if _, err := s.open(t.Context(), "50000", func() {}); !errors.Is(err, errLost) || time.Since(begun) > time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		begun = time.Now()
		if _, err := s.open(ctx, "50000", func() {}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errLost) || time.Since(begun) > 2*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}

		<-time.After(pingPeriod + pingTime + time.Second)
		synctest.Wait()

		if !isClosed(s.spdy.CloseChan()) {
			t.Error("nothing was noticed")
		}

		// The one that answers lives.
		if isClosed(f.session.spdy.CloseChan()) {
			t.Error("the connection that is answered was ended")
		}

		f.session.close()

		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, errLost) {
			t.Errorf("reading ends with %v", err)
		}
	})
}
