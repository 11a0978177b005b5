package hostcluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/moby/spdystream"
)

const (
	// chunkSize is how much is written at once, so that no stream makes the others of its connection wait for long.
	chunkSize = 32 << 10
	// lastWords is how long after the end of the data the reason may come: it has a stream of its own.
	lastWords = time.Second
)

// forwarded is a connection to a port of a pod. What the kubelet says about its failure is the error of
// reads and writes.
type forwarded struct {
	session      *session
	port         string
	data, failed *spdystream.Stream
	refused      func() // told when the kubelet says that something went wrong

	// chunks are what was read, handed over one by one: a reader that does not keep up holds back the whole connection to
	// the pod, since SPDY's streams have no flow control here. What talosop sends has its own, HTTP/2's.
	chunks  chan []byte
	reading chan struct{} // a token: one reader at a time
	unread  []byte        // the rest of a chunk, of who has the token
	writing chan struct{} // a token: one writer at a time, also after it has given up waiting

	over   atomic.Bool   // the kubelet has said that it sends nothing more
	ended  chan struct{} // closed when there is nothing more to read, with why
	why    error
	finish sync.Once
	closed chan struct{}
	shut   sync.Once

	readBy, writeBy deadline
}

func newForwarded(s *session, port string, data, failed *spdystream.Stream, refused func()) *forwarded {
	c := &forwarded{
		session: s, port: port, data: data, failed: failed, refused: refused,
		chunks: make(chan []byte), reading: make(chan struct{}, 1), writing: make(chan struct{}, 1),
		ended: make(chan struct{}), closed: make(chan struct{}),
		readBy: newDeadline(), writeBy: newDeadline(),
	}

	said := make(chan string, 1)

	go c.listen(said)
	go c.receive(said)

	return c
}

// listen waits for the kubelet to say what went wrong. Something listening on no port is nothing against the connection to
// the pod, a sandbox that is gone is, and they cannot be told apart but by text: the next connection begins anew, and what goes through this one goes on.
func (c *forwarded) listen(said chan<- string) {
	text, err := io.ReadAll(c.failed)
	if err == nil && len(text) > 0 {
		c.session.retire()
		c.refused()
		c.end(c.failure(errors.New(strings.Join(strings.Fields(string(text)), " "))))
	}

	said <- string(text)
}

// receive hands over what comes until the data ends.
func (c *forwarded) receive(said <-chan string) {
	for {
		chunk, err := c.data.ReadData()
		if err != nil {
			c.over.Store(true)

			break
		}

		select {
		case c.chunks <- chunk:
		case <-c.closed:
			return
		case <-c.session.spdy.CloseChan():
			c.end(c.failure(errLost))

			return
		}
	}

	select {
	case <-said: // and ended with it, if there was anything
	case <-c.closed:
	case <-time.After(lastWords):
	}

	if isClosed(c.session.spdy.CloseChan()) {
		c.end(c.failure(errLost))
	}

	c.end(io.EOF)
}

// failure is an error as those of other connections are.
func (c *forwarded) failure(err error) error {
	return &net.OpError{Op: "forward", Net: "tcp", Addr: c.RemoteAddr(), Err: err}
}

func (c *forwarded) end(why error) {
	c.finish.Do(func() {
		c.why = why
		close(c.ended)
	})
}

// Read implements net.Conn.
func (c *forwarded) Read(p []byte) (int, error) {
	if err := c.take(c.reading, &c.readBy); err != nil {
		return 0, err
	}

	defer func() { <-c.reading }()

	if len(c.unread) == 0 && len(p) > 0 {
		chunk, err := c.next()
		if err != nil {
			return 0, err
		}

		c.unread = chunk
	}

	n := copy(p, c.unread)
	c.unread = c.unread[n:]

	return n, nil
}

// next is the next chunk. What was sent before the end is read before the end.
func (c *forwarded) next() ([]byte, error) {
	select {
	case chunk := <-c.chunks:
		return chunk, nil
	default:
	}

	select {
	case chunk := <-c.chunks:
		return chunk, nil
	case <-c.ended:
		return nil, c.why
	case <-c.readBy.passed():
		return nil, os.ErrDeadlineExceeded
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

// take takes a token, which is given back by receiving from it.
func (c *forwarded) take(token chan struct{}, by *deadline) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	case <-by.passed():
		return os.ErrDeadlineExceeded
	default:
	}

	select {
	case token <- struct{}{}:
		return nil
	case <-c.closed:
		return net.ErrClosed
	case <-by.passed():
		return os.ErrDeadlineExceeded
	}
}

// Write implements net.Conn.
func (c *forwarded) Write(p []byte) (int, error) {
	sent := 0

	for len(p) > 0 {
		chunk := p[:min(len(p), chunkSize)]
		if err := c.send(chunk); err != nil {
			return sent, err
		}

		sent, p = sent+len(chunk), p[len(chunk):]
	}

	return sent, nil
}

// send writes a chunk, or gives up waiting for that; its copy may still be sent then.
func (c *forwarded) send(chunk []byte) error {
	if err := c.broken(); err != nil {
		return err
	}

	if err := c.take(c.writing, &c.writeBy); err != nil {
		return err
	}

	done, own := make(chan error, 1), append([]byte(nil), chunk...)

	go func() {
		defer func() { <-c.writing }()

		_, err := c.data.Write(own)
		done <- err
	}()

	select {
	case err := <-done:
		if err != nil {
			return c.failure(fmt.Errorf("%w: %w", errLost, err))
		}

		return nil
	case <-c.writeBy.passed():
		return os.ErrDeadlineExceeded
	case <-c.closed:
		return net.ErrClosed
	}
}

// broken is why nothing more can be written. A kubelet ends its data when it forwards no more, and then has nobody who takes what is sent to it:
// one of the five workers that it has for all streams of the connection would wait for ever (moby/spdystream 0.5, connection.go handleDataFrame).
func (c *forwarded) broken() error {
	select {
	case <-c.ended:
		if !errors.Is(c.why, io.EOF) {
			return c.why
		}
	default:
	}

	if c.over.Load() {
		return c.failure(syscall.EPIPE)
	}

	return nil
}

// CloseWrite says that nothing more will be written.
func (c *forwarded) CloseWrite() error {
	if err := c.take(c.writing, &c.writeBy); err != nil {
		return err
	}

	defer func() { <-c.writing }()

	return c.data.Close()
}

// Close implements net.Conn. It waits for nobody.
func (c *forwarded) Close() error {
	c.shut.Do(func() {
		close(c.closed)
		c.readBy.stop()
		c.writeBy.stop()

		go func() {
			c.writing <- struct{}{} // after what is being written

			// First the end of what was written, then, which sends nothing any more, that of what is read: both fail when the
			// connection is lost, which ends them as well.
			_ = c.data.Close()
			_ = c.data.Reset()
			_ = c.failed.Reset()

			c.session.released()
		}()
	})

	return nil
}

// address is the far end, as people know it.
type address string

// Network implements net.Addr.
func (address) Network() string { return "port-forward" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// LocalAddr implements net.Conn.
func (c *forwarded) LocalAddr() net.Addr { return address("talosop") }

// RemoteAddr implements net.Conn.
func (c *forwarded) RemoteAddr() net.Addr { return address(net.JoinHostPort(c.session.name, c.port)) }

// SetDeadline implements net.Conn.
func (c *forwarded) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *forwarded) SetReadDeadline(t time.Time) error { return c.set(&c.readBy, t) }

// SetWriteDeadline implements net.Conn.
func (c *forwarded) SetWriteDeadline(t time.Time) error { return c.set(&c.writeBy, t) }

func (c *forwarded) set(d *deadline, t time.Time) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
		d.set(t)

		return nil
	}
}

// deadline is a time that can be moved while others wait for it.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	after chan struct{} // closed when the time has passed
}

func newDeadline() deadline { return deadline{after: make(chan struct{})} }

func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.after
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// set moves the time; zero is never. Who waits already waits for the new one.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.timer != nil && !d.timer.Stop() {
		<-d.after // it has run, or is about to
	}

	d.timer = nil

	select {
	case <-d.after:
		d.after = make(chan struct{})
	default:
	}

	if t.IsZero() {
		return
	}

	after := d.after
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(after) })
	} else {
		close(after)
	}
}
