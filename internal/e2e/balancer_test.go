package e2e

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balance is a load balancer in front of the Kubernetes API of control planes, on an address of this computer that
// they reach. It tries the control planes in turn and gives a connection to the first that accepts it. It returns
// the URL of the endpoint.
func balance(t *testing.T, controlPlanes []string) string {
	t.Helper()

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", net.JoinHostPort(ownAddress(t, controlPlanes[0]), "0"))
	if err != nil {
		t.Fatal(err)
	}

	var (
		connections sync.WaitGroup
		turn        atomic.Uint64
	)

	connections.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}

			connections.Go(func() { carry(t.Context(), client, controlPlanes, int(turn.Add(1)%uint64(len(controlPlanes)))) })
		}
	})

	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close the load balancer: %v", err)
		}

		connections.Wait()
	})

	return "https://" + l.Addr().String()
}

// ownAddress is the address of this computer as a machine sees it.
func ownAddress(t *testing.T, machine string) string {
	t.Helper()

	c, err := (&net.Dialer{}).DialContext(t.Context(), "udp4", net.JoinHostPort(machine, "6443")) // sends nothing
	if err != nil {
		t.Fatal(err)
	}

	own, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}

	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	return own
}

// carry forwards a connection to a control plane until either side or the test ends it.
func carry(ctx context.Context, client net.Conn, controlPlanes []string, first int) {
	defer client.Close() // an error says that either side closed it

	for i := range controlPlanes {
		server, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp4",
			net.JoinHostPort(controlPlanes[(first+i)%len(controlPlanes)], "6443"))
		if err != nil {
			continue
		}

		defer server.Close()

		stop := context.AfterFunc(ctx, func() {
			_ = client.Close()
			_ = server.Close()
		})
		defer stop()

		done := make(chan struct{}, 2) // one for each direction

		for _, direction := range [][2]net.Conn{{client, server}, {server, client}} {
			go func() {
				_, _ = io.Copy(direction[0], direction[1]) // ends when either side does
				done <- struct{}{}
			}()
		}

		<-done

		return
	}
}
