// Package gateway has routes into a private network for tests: an SSH server that forwards connections, and
// proxies. Like servers inside of such a network, they resolve names that nothing else resolves. So a client that
// reaches one of these names came through here. The package records all targets of connections.
package gateway

import (
	"cmp"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// Network is the network behind a gateway.
type Network struct {
	mu     sync.Mutex
	hosts  map[string]string
	dialed []string
	at     string
}

// NewNetwork has hosts by name, or host:port by name:port; what is not in it is dialed as it is.
func NewNetwork(hosts map[string]string) *Network { return &Network{hosts: hosts, at: "127.0.0.1"} }

// At has the gateways that are started from now on listen at another address than 127.0.0.1.
func (n *Network) At(address string) *Network {
	n.at = address

	return n
}

// Dialed are the requested addresses, host:port, in order.
func (n *Network) Dialed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()

	return slices.Clone(n.dialed)
}

func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}

	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	forwarded, known := n.hosts[address]
	host = cmp.Or(n.hosts[host], host)
	n.mu.Unlock()

	if !known {
		forwarded = net.JoinHostPort(host, port)
	}

	return (&net.Dialer{}).DialContext(ctx, network, forwarded)
}

// listen serves connections until the test ends.
func (n *Network) listen(tb testing.TB, serve func(net.Conn)) net.Addr {
	tb.Helper()

	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", net.JoinHostPort(n.at, "0"))
	if err != nil {
		tb.Fatal(err)
	}

	var (
		mu   sync.Mutex
		open []net.Conn
		all  sync.WaitGroup
	)

	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed below
			}

			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			all.Go(func() { serve(conn) })
		}
	})

	tb.Cleanup(func() {
		_ = listener.Close() // no client connects any more

		mu.Lock()
		for _, conn := range open {
			_ = conn.Close() // or closed before
		}
		mu.Unlock()

		all.Wait()
	})

	return listener.Addr()
}

// join passes bytes on until one side ends.
func join(a, b io.ReadWriteCloser) {
	var both sync.WaitGroup

	for _, pair := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // ends with either side
			_ = a.Close()
			_ = b.Close()
		})
	}

	both.Wait()
}
