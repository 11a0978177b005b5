package containers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// echoServer answers each line with a name in front of it.
func echoServer(t *testing.T, name string) net.Listener {
	t.Helper()

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Close() })

	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}

			go func() {
				defer func() { _ = conn.Close() }()

				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					_, _ = fmt.Fprintf(conn, "%s: %s\n", name, lines.Text())
				}
			}()
		}
	}()

	return l
}

// dialNamed leads names to listeners; others are silent.
func dialNamed(listeners map[string]net.Listener) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		l, ok := listeners[address]
		if !ok {
			return nil, errors.New("no server is there")
		}

		return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
	}
}

func connectTo(t *testing.T, address string) net.Conn {
	t.Helper()

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() })

	return conn
}

// A tunnel leads to the first target that answers, several programs at a time, outlives the call
// that opened it, and leaves nothing behind when it is closed.
func TestTunnel_leadsToTheFirstTargetThatAnswers(t *testing.T) {
	t.Parallel()

	opening, opened := context.WithCancel(t.Context())
	left := 0

	tun, err := OpenTunnel(opening, dialNamed(map[string]net.Listener{"second": echoServer(t, "second")}),
		func() { left++ }, unexpected(t), "first", "second")
	if err != nil {
		t.Fatal(err)
	}

	opened()

	var open Tunnels

	open.Keep(tun)

	one, other := connectTo(t, tun.Address()), connectTo(t, tun.Address())
	for i, conn := range []net.Conn{one, other} {
		if _, err := fmt.Fprintf(conn, "hello %d\n", i); err != nil {
			t.Fatal(err)
		}
	}

	for i, conn := range []net.Conn{one, other} {
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != fmt.Sprintf("second: hello %d\n", i) {
			t.Errorf("got %q, %v", line, err)
		}
	}

	if err := open.Close(tun.Address()); err != nil {
		t.Error(err)
	}

	if _, err := one.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection through a closed tunnel: %v", err)
	}

	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tun.Address()); err == nil {
		_ = conn.Close()

		t.Error("a closed tunnel takes connections")
	}

	if left != 1 {
		t.Errorf("the way through the host was left %d times", left)
	}

	if err := open.Close(tun.Address()); err != nil {
		t.Errorf("to close it again: %v", err)
	}
}

// Where no target answers the connection ends, and the tunnel continues.
func TestTunnel_whereNoTargetAnswers(t *testing.T) {
	t.Parallel()

	targets := map[string]net.Listener{}

	warned := make(chan error, 8)
	warn := func(_ context.Context, _ string, err error) { warned <- err }

	tun, err := OpenTunnel(t.Context(), dialNamed(targets), func() {}, warn, "first")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = tun.Close() })

	if _, err := connectTo(t, tun.Address()).Read(make([]byte, 1)); err == nil {
		t.Error("something answered")
	}

	if _, err := connectTo(t, tun.Address()).Read(make([]byte, 1)); err == nil {
		t.Error("something answered")
	}

	for range 2 {
		if err := <-warned; !strings.Contains(err.Error(), "no server is there") {
			t.Errorf("warned of %v", err)
		}
	}
}

// unexpected fails a test whose tunnel warns of anything.
func unexpected(t *testing.T) func(context.Context, string, error) {
	return func(_ context.Context, message string, err error) { t.Errorf("%s: %v", message, err) }
}
