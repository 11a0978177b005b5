package gateway

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"github.com/armon/go-socks5"
)

// SOCKS starts a SOCKS5 proxy and returns its URL.
func (n *Network) SOCKS(tb testing.TB) string {
	tb.Helper()

	server, err := socks5.New(&socks5.Config{
		Dial: n.dial, Resolver: unresolved{}, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		tb.Fatal(err)
	}

	return "socks5://" + n.listen(tb, func(conn net.Conn) {
		_ = server.ServeConn(conn) // the client sees why
	}).String()
}

// HTTP starts a proxy for CONNECT, which wants a user and a password, and returns its URL with them.
func (n *Network) HTTP(tb testing.TB) string {
	tb.Helper()

	return "http://user:secret@" + n.listen(tb, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()

		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return // no request came
		}

		if user, password, ok := (&http.Request{Header: http.Header{
			"Authorization": request.Header["Proxy-Authorization"],
		}}).BasicAuth(); !ok || user != "user" || password != "secret" {
			_, _ = io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

			return
		}

		target, err := n.dial(tb.Context(), "tcp", request.Host)
		if err != nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")

			return
		}

		if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
			join(conn, target)
		}
	}).String()
}

// unresolved leaves names to the network.
type unresolved struct{}

func (unresolved) Resolve(ctx context.Context, _ string) (context.Context, net.IP, error) {
	return ctx, nil, nil
}
