package talossim

import (
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout bounds the connection to the server behind a forwarder.
const dialTimeout = 5 * time.Second

// forwarder passes TCP connections on to another server, bytes untouched, so that TLS
// is between the client and that server.
type forwarder struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	work   sync.WaitGroup
}

func forward(l net.Listener, dial func() (net.Conn, error)) *forwarder {
	f := &forwarder{listener: l, dial: dial, conns: map[net.Conn]struct{}{}}
	f.work.Go(f.accept)

	return f
}

func (f *forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}

		if !f.track(conn) {
			continue
		}

		f.work.Go(func() { f.pass(conn) })
	}
}

// track remembers a connection so that stop can cut it.
func (f *forwarder) track(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.closed {
		_ = conn.Close() // nobody is left to tell

		return false
	}

	f.conns[conn] = struct{}{}

	return true
}

func (f *forwarder) drop(conn net.Conn) {
	f.mu.Lock()
	delete(f.conns, conn)
	f.mu.Unlock()

	_ = conn.Close() // it may be closed already
}

func (f *forwarder) pass(client net.Conn) {
	defer f.drop(client)

	server, err := f.dial()
	if err != nil || !f.track(server) {
		return
	}
	defer f.drop(server)

	done := make(chan struct{})

	go func() {
		defer close(done)

		_, _ = io.Copy(server, client) // ends when either side does
		_ = server.Close()
	}()

	_, _ = io.Copy(client, server) // ends when either side does
	_ = client.Close()
	<-done
}

// stop closes the listener, cuts every connection and waits until all is quiet.
func (f *forwarder) stop() {
	_ = f.listener.Close() // nothing can be done about an error

	f.mu.Lock()
	f.closed = true
	conns := make([]net.Conn, 0, len(f.conns))
	for conn := range f.conns {
		conns = append(conns, conn)
	}
	f.mu.Unlock()

	for _, conn := range conns {
		_ = conn.Close() // it may be closed already
	}

	f.work.Wait()
}
