package portforward

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

// reasonTimeout is how long after the end of the data its reason may come, which has a separate stream.
const reasonTimeout = time.Second

// conn is a connection to a port of a pod: one end of a pipe, whose other end is copied from and to the streams. What
// the kubelet says about a failure is the error of reads and writes. A reader that does not keep up holds back all
// streams of the session, since SPDY's have no flow control of their own.
type conn struct {
	net.Conn // the near end, with its deadlines

	far           net.Conn
	session       *session
	port          string
	data, failure httpstream.Stream
	refused       func()

	sent   chan struct{} // closed when nothing more is sent
	closed atomic.Bool   // by Close
	finish sync.Once
	reason atomic.Pointer[net.OpError] // why the kubelet's side ended, nil when it just did
}

func newConn(s *session, port string, data, failure httpstream.Stream, refused func()) *conn {
	near, far := net.Pipe()
	c := &conn{
		Conn: near, far: far, session: s, port: port, data: data, failure: failure, refused: refused,
		sent: make(chan struct{}),
	}
	failureRead := make(chan struct{})

	go c.readFailure(failureRead)
	go c.receive(failureRead)
	go c.send()

	return c
}

// readFailure waits for the kubelet's error. A port without a listener does not affect the session, but a sandbox
// that is gone does, and only the text distinguishes them. The next connection gets a new session, and other
// connections of this one continue.
func (c *conn) readFailure(failureRead chan<- struct{}) {
	defer close(failureRead)

	text, err := io.ReadAll(c.failure)
	if err == nil && len(text) > 0 {
		c.session.retire()
		c.refused()
		c.end(errors.New(strings.Join(strings.Fields(string(text)), " ")))
	}
}

// receive copies incoming data until it ends, then ends the connection. A kubelet whose data ended reads nothing
// more. Further data would block one of the five workers that it has for all streams, for ever (moby/spdystream
// 0.5, connection.go handleDataFrame).
func (c *conn) receive(failureRead <-chan struct{}) {
	_, _ = io.Copy(c.far, c.data) // it ends with the stream, or with Close
	_ = c.CloseWrite()

	select {
	case <-failureRead: // and ended with it, if there was anything
	case <-time.After(reasonTimeout):
	}

	if c.session.lost() {
		c.end(errLost)
	}

	c.end(nil)
}

// send copies written data until CloseWrite or Close.
func (c *conn) send() {
	defer close(c.sent)

	_, _ = io.Copy(c.data, c.far)
	_ = c.data.Close() // of a stream that may have ended
}

func (c *conn) end(reason error) {
	c.finish.Do(func() {
		if reason != nil {
			c.reason.Store(&net.OpError{Op: "forward", Net: "tcp", Addr: c.RemoteAddr(), Err: reason})
		}

		_ = c.far.Close() // a pipe's gives no error
	})
}

// failed turns the error of a pipe into that of this connection; ended is what it is when the kubelet's side just
// ended.
func (c *conn) failed(err, ended error) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe):
		return err
	case c.closed.Load():
		return net.ErrClosed
	case c.reason.Load() != nil:
		return c.reason.Load()
	default:
		return ended
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)

	return n, c.failed(err, io.EOF)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)

	return n, c.failed(err, &net.OpError{Op: "forward", Net: "tcp", Addr: c.RemoteAddr(), Err: syscall.EPIPE})
}

// CloseWrite ends the written data.
func (c *conn) CloseWrite() error { return c.far.SetReadDeadline(time.Now()) }

// Close implements net.Conn. It does not block.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}

	go func() {
		<-c.sent

		_ = c.data.Reset() // sends nothing: its end was sent
		_ = c.failure.Reset()

		c.session.conn.RemoveStreams(c.data, c.failure)
		c.session.released()
	}()

	return c.Conn.Close()
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.failed(c.Conn.SetDeadline(t), nil) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.failed(c.Conn.SetReadDeadline(t), nil) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.failed(c.Conn.SetWriteDeadline(t), nil) }

// Address is the far end, as people know it.
type Address string

// Network implements net.Addr.
func (Address) Network() string { return "port-forward" }

// String implements net.Addr.
func (a Address) String() string { return string(a) }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return Address("talosop") }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return Address(net.JoinHostPort(c.session.name, c.port)) }
