package process

import (
	"context"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

const (
	// DialTimeout bounds the connection to the server behind a forwarder.
	DialTimeout = 5 * time.Second
	// quietTime without a byte says that no request runs on a connection.
	quietTime = 250 * time.Millisecond
)

// Forwarder passes TCP connections on to another server, bytes untouched, so that TLS
// is between the client and that server.
type Forwarder struct {
	Listener net.Listener
	dial     func() (net.Conn, error)

	mu     sync.Mutex
	conns  map[net.Conn]*atomic.Int64 // when they were last used, in Unix nanoseconds
	closed bool
	work   sync.WaitGroup
}

// Forward passes what comes in on l to what dial connects to, until Stop.
func Forward(l net.Listener, dial func() (net.Conn, error)) *Forwarder {
	f := &Forwarder{Listener: l, dial: dial, conns: map[net.Conn]*atomic.Int64{}}
	f.work.Go(f.accept)

	return f
}

func (f *Forwarder) accept() {
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			return
		}

		used := &atomic.Int64{}
		if !f.track(conn, used) {
			continue
		}

		f.work.Go(func() { f.pass(conn, used) })
	}
}

// track registers a connection so that stop can cut it.
func (f *Forwarder) track(conn net.Conn, used *atomic.Int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.closed {
		_ = conn.Close() // no caller is left to report to

		return false
	}

	used.Store(time.Now().UnixNano())
	f.conns[conn] = used

	return true
}

func (f *Forwarder) drop(conn net.Conn) {
	f.mu.Lock()
	delete(f.conns, conn)
	f.mu.Unlock()

	_ = conn.Close() // it may be closed already
}

func (f *Forwarder) pass(client net.Conn, used *atomic.Int64) {
	defer f.drop(client)

	server, err := f.dial()
	if err != nil || !f.track(server, used) {
		return
	}
	defer f.drop(server)

	done := make(chan struct{})

	go func() {
		defer close(done)

		_, _ = io.Copy(server, usedReader{client, used}) // ends when either side does
		_ = server.Close()
	}()

	_, _ = io.Copy(client, usedReader{server, used}) // ends when either side does
	_ = client.Close()
	<-done
}

// usedReader notes when something was read.
type usedReader struct {
	io.Reader

	used *atomic.Int64
}

// Read implements io.Reader.
func (r usedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.used.Store(time.Now().UnixNano())

	return n, err
}

// Drain closes the listener and cuts each connection in a quiet moment, as a server does
// that lets running requests finish. It stops the forwarder with the end of ctx at the
// latest.
func (f *Forwarder) Drain(ctx context.Context) {
	defer f.Stop()

	_ = f.Listener.Close() // nothing can be done about an error

	for f.cutQuiet() > 0 {
		if timing.Pause(ctx, quietTime/10) != nil {
			return
		}
	}
}

// cutQuiet cuts connections that are not in use and counts the others.
func (f *Forwarder) cutQuiet() int {
	f.mu.Lock()
	defer f.mu.Unlock()

	busy := 0

	for conn, used := range f.conns {
		if time.Since(time.Unix(0, used.Load())) < quietTime {
			busy++

			continue
		}

		_ = conn.Close() // it may be closed already
	}

	return busy
}

// Stop closes the listener, cuts every connection and waits until all is quiet.
func (f *Forwarder) Stop() {
	_ = f.Listener.Close() // nothing can be done about an error

	f.mu.Lock()
	f.closed = true
	conns := slices.Collect(maps.Keys(f.conns))
	f.mu.Unlock()

	for _, conn := range conns {
		_ = conn.Close() // it may be closed already
	}

	f.work.Wait()
}
