package dialer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/gateway"
)

// serves starts a server until the test ends.
func serves(t *testing.T, network, address string, serve func(net.Conn)) net.Addr {
	t.Helper()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed above
			}

			go serve(conn)
		}
	}()

	return listener.Addr()
}

// echoServer starts a server that says everything again.
func echoServer(t *testing.T) string {
	t.Helper()

	return serves(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		_, _ = io.Copy(conn, conn) // until the client ends
		_ = conn.Close()
	}).String()
}

// inside is a name that only the network resolves, with the port of a server.
func inside(t *testing.T, server string) (*gateway.Network, string) {
	t.Helper()

	host, port, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}

	return gateway.NewNetwork(map[string]string{"cp-1.inside.invalid": host}), net.JoinHostPort("cp-1.inside.invalid", port)
}

func says(t *testing.T, d *Dialer, address, what string) {
	t.Helper()

	conn, err := d.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = conn.Close() }()

	heard := make([]byte, len(what))
	if _, err := io.WriteString(conn, what); err != nil {
		t.Fatal(err)
	}

	if _, err := io.ReadFull(conn, heard); err != nil || string(heard) != what {
		t.Errorf("heard %q (%v), want %q", heard, err, what)
	}
}

func TestDial_throughEveryGateway(t *testing.T) {
	t.Parallel()

	network, address := inside(t, echoServer(t))
	jump := network.Jump(t)
	host := &JumpHost{Address: jump.Address, User: gateway.User, PrivateKey: jump.PrivateKey, HostKey: jump.HostKey}
	large := strings.Repeat("all of it ", 100_000)

	for name, options := range map[string]Options{
		"SOCKS5":                   {ProxyURL: network.SOCKS(t)},
		"CONNECT":                  {ProxyURL: network.HTTP(t)},
		"jump host":                {Jump: host},
		"jump host behind a proxy": {ProxyURL: network.SOCKS(t), Jump: host},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d, err := New(options)
			if err != nil {
				t.Fatal(err)
			}

			says(t, d, address, "hello")
			says(t, d, address, large)
		})
	}
}

// A gateway that is reached and cannot continue says so, with its name.
func TestDial_namesTheGateway(t *testing.T) {
	t.Parallel()

	network := gateway.NewNetwork(nil)
	jump := network.Jump(t)
	closedPort := "127.0.0.1:1"

	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"SOCKS5":  {Options{ProxyURL: network.SOCKS(t)}, []string{"through the proxy socks5://127.0.0.1:"}},
		"CONNECT": {Options{ProxyURL: network.HTTP(t)}, []string{"through the proxy http://127.0.0.1:", "502"}},
		"jump host": {Options{Jump: &JumpHost{Address: jump.Address, User: gateway.User, PrivateKey: jump.PrivateKey,
			HostKey: jump.HostKey}}, []string{"through the SSH jump host jumper@127.0.0.1:", "connect to " + closedPort}},
		"no proxy": {Options{ProxyURL: "socks5://127.0.0.1:1"}, []string{"through the proxy socks5://127.0.0.1:1"}},
		"no user": {Options{Jump: &JumpHost{Address: jump.Address, User: "other", PrivateKey: jump.PrivateKey,
			HostKey: jump.HostKey}}, []string{"jump host other@127.0.0.1:", "log in: ", "unable to authenticate"}},
		"another server": {Options{Jump: &JumpHost{Address: jump.Address, User: gateway.User, PrivateKey: jump.PrivateKey,
			HostKey: network.Jump(t).HostKey}}, []string{"log in: ", "host key mismatch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d, err := New(test.options)
			if err != nil {
				t.Fatal(err)
			}

			_, err = d.Dial(t.Context(), "tcp", closedPort)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("error is %v, want one with %q", err, want)
				}
			}
		})
	}
}

// A proxy that says nothing is waited for no longer than the context.
func TestDial_endsWithItsContext(t *testing.T) {
	t.Parallel()

	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = silent.Close() })

	for _, options := range []Options{
		{ProxyURL: "http://" + silent.Addr().String()}, {ProxyURL: "socks5://" + silent.Addr().String()},
		{Jump: &JumpHost{Address: silent.Addr().String(), User: "a", PrivateKey: gateway.NewNetwork(nil).Jump(t).PrivateKey,
			HostKey: gateway.NewNetwork(nil).Jump(t).HostKey}},
	} {
		d, err := New(options)
		if err != nil {
			t.Fatal(err)
		}

		late := errors.New("that is too long")

		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
		defer cancel()

		if _, err := d.Dial(ctx, "tcp", "192.0.2.1:50000"); err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("through %s: error is %v", d, err)
		}
	}
}

// All connections share one login, and a lost one is made again.
func TestDial_logsInAgain(t *testing.T) {
	t.Parallel()

	network, address := inside(t, echoServer(t))
	jump := network.Jump(t)

	d, err := New(Options{Jump: &JumpHost{Address: jump.Address, User: gateway.User, PrivateKey: jump.PrivateKey,
		HostKey: jump.HostKey}})
	if err != nil {
		t.Fatal(err)
	}

	says(t, d, address, "first")
	says(t, d, address, "second")

	if logins := jump.Logins(); logins != 1 {
		t.Errorf("logged in %d times for two connections", logins)
	}

	conn, err := d.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}

	jump.Cut()

	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the jump host")
	}

	// The end of the login may be noticed after that of the connection.
	for t.Context().Err() == nil {
		if again, err := d.Dial(t.Context(), "tcp", address); err == nil {
			_ = again.Close()

			break
		}
	}

	says(t, d, address, "third")

	if logins := jump.Logins(); logins != 2 {
		t.Errorf("logged in %d times after one loss", logins)
	}
}

func TestDial_deadlinesThroughAJumpHost(t *testing.T) {
	t.Parallel()

	network, address := inside(t, echoServer(t))
	jump := network.Jump(t)

	d, err := New(Options{Jump: &JumpHost{Address: jump.Address, User: gateway.User, PrivateKey: jump.PrivateKey,
		HostKey: jump.HostKey}})
	if err != nil {
		t.Fatal(err)
	}

	conn, err := d.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = conn.Close() }()

	if err := conn.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}

	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error is %v, want the deadline", err)
	}
}

// The agent has the key, and a file knows the server.
func TestDial_withAgentAndKnownHosts(t *testing.T) {
	network, address := inside(t, echoServer(t))
	jump := network.Jump(t)
	dir := t.TempDir()
	socket := filepath.Join(dir, "agent")

	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: jump.Key}); err != nil {
		t.Fatal(err)
	}

	serves(t, "unix", socket, func(conn net.Conn) { _ = agent.ServeAgent(keys, conn) }) // ends with the client

	t.Setenv("SSH_AUTH_SOCK", socket)

	host := &JumpHost{Address: jump.Address, User: gateway.User, KnownHosts: filepath.Join(dir, "known_hosts")}
	dial := func() error {
		d, err := New(Options{Jump: host})
		if err != nil {
			t.Fatal(err)
		}

		conn, err := d.Dial(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}

		return err
	}

	write(t, host.KnownHosts, "")

	if err := dial(); err == nil || !strings.Contains(err.Error(), "has no host key of the server, whose key is SHA256:") {
		t.Errorf("error of an unknown host is %v", err)
	}

	write(t, host.KnownHosts, line(t, jump.Address, network.Jump(t).HostKey))

	if err := dial(); err == nil || !strings.Contains(err.Error(), "may be intercepted") {
		t.Errorf("error of a changed host is %v", err)
	}

	write(t, host.KnownHosts, line(t, jump.Address, jump.HostKey))

	if err := dial(); err != nil {
		t.Error(err)
	}

	t.Setenv("SSH_AUTH_SOCK", "")

	if err := dial(); err == nil || !strings.Contains(err.Error(), "SSH_AUTH_SOCK") {
		t.Errorf("error without an agent is %v", err)
	}
}

func line(t *testing.T, address, hostKey string) string {
	t.Helper()

	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(hostKey))
	if err != nil {
		t.Fatal(err)
	}

	return knownhosts.Line([]string{address}, key)
}

func write(t *testing.T, path, content string) {
	t.Helper()

	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCheckProxyURL(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"socks5://10.0.0.5:1080":      "",
		"http://user:secret@proxy:80": "",
		"https://proxy.example:443/":  "",
		"socks4://10.0.0.5:1080":      `unsupported scheme "socks4"`,
		"10.0.0.5:1080":               "not a URL",
		"socks5://10.0.0.5":           "host or port is missing",
		"http://proxy:80/path":        "a path",
		"http://user:sec ret@proxy":   "not a URL",
	} {
		err := CheckProxyURL(text)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q", text, err, want)
		}
	}
}

func TestJumpHost_hidesItsKey(t *testing.T) {
	t.Parallel()

	jump := JumpHost{Address: "bastion", User: "core", PrivateKey: "very private"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, jump) + fmt.Sprintf(verb, &jump); strings.Contains(text, "private") {
			t.Errorf("%s shows %s", verb, text)
		}
	}

	if got := jump.String(); got != "core@bastion:22" {
		t.Errorf("it is called %s", got)
	}
}
