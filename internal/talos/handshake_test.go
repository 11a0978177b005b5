package talos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

func notYetValid(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
}

func TestHandshake_tellsWhoAnswers(t *testing.T) {
	t.Parallel()

	ours, others := newTestCA(t), newTestCA(t)
	waiting := maintenance(t, nil)
	pinned := fingerprint(waiting.Certificates[0].Leaf)

	demanding := maintenance(t, nil)
	demanding.ClientAuth = tls.RequireAnyClientCert

	strict := ours.member(t, nil)
	strict.ClientCAs = others.pool()

	tests := map[string]struct {
		server      *tls.Config
		credentials Credentials
		fingerprint string
		access      step.Access
		class       error
		text        string
	}{
		"a member": {server: ours.member(t, nil), credentials: ours.credentials(t),
			access: step.Member},
		"maintenance mode":             {server: waiting, credentials: ours.credentials(t), access: step.Maintenance},
		"maintenance mode, no secrets": {server: waiting, access: step.Maintenance},
		"maintenance mode, clock behind": {server: maintenance(t, expired), credentials: ours.credentials(t),
			access: step.Maintenance},
		"the expected fingerprint": {
			server: waiting, credentials: ours.credentials(t), fingerprint: pinned,
			access: step.Maintenance,
		},
		"another fingerprint": {
			server: waiting, credentials: ours.credentials(t), fingerprint: "expected",
			class: ErrForeign, text: "fingerprint " + pinned + ", expected is expected",
		},
		"another cluster": {
			server: others.member(t, nil), credentials: ours.credentials(t), class: ErrForeign,
			text: "not signed by the Talos CA of this cluster",
		},
		"another cluster, clock behind": {
			server: others.member(t, notYetValid), credentials: ours.credentials(t), class: ErrForeign,
			text: "not signed by the Talos CA",
		},
		"a cluster without credentials": {server: ours.member(t, nil), class: ErrForeign,
			text: "no credentials for its cluster"},
		"maintenance mode that asks for a certificate": {
			server: demanding, credentials: ours.credentials(t), class: ErrForeign, text: "requests a client certificate",
		},
		"a certificate for another address": {
			server:      ours.member(t, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 11)} }),
			credentials: ours.credentials(t),
			class:       ErrUnreachable, text: "machine.certSANs",
		},
		"a member, clock behind": {
			server: ours.member(t, notYetValid), credentials: ours.credentials(t), class: ErrUnreachable,
			text: "its certificate is not valid before",
		},
		"a member whose certificate ended": {
			server: ours.member(t, expired), credentials: ours.credentials(t), class: ErrUnreachable,
			text: "its certificate expired at " + time.Now().Add(-time.Minute).UTC().Format("2006-01-02T15"),
		},
		"another cluster, the certificate ended": {
			server: others.member(t, expired), credentials: ours.credentials(t), class: ErrForeign,
			text: "not signed by the Talos CA",
		},
		"our client certificate expired": {
			server: ours.member(t, nil), credentials: ours.credentialsOf(t, ours.issue(t, "", expired)), class: ErrNotAuthorized,
			text: "clock",
		},
		"our client certificate is of another CA": {
			server: strict, credentials: ours.credentials(t), class: ErrForeign, text: "does not accept client certificates",
		},
		"our client certificate is for servers": {
			server: ours.member(t, nil), class: ErrNotAuthorized, text: "refused the client certificate",
			credentials: ours.credentialsOf(t, ours.issue(t, "", func(c *x509.Certificate) {
				c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			})),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, p, err := connect(t, testOptions(serveTLS(t, test.server).port(), test.credentials), test.fingerprint)

			if test.class != nil {
				if s != nil || !errors.Is(err, test.class) || Classify(err) != test.class ||
					!strings.Contains(err.Error(), test.text) {
					t.Errorf("session %v, err = %v, want %q with %q", s, err, test.class, test.text)
				}

				return
			}

			if err != nil || p.access != test.access || s.peer.access != test.access || !s.alive() {
				t.Fatalf("err = %v, access = %q, want %q", err, p.access, test.access)
			}

			if want := fingerprint(test.server.Certificates[0].Leaf); p.fingerprint != want {
				t.Errorf("fingerprint %s, want %s", p.fingerprint, want)
			}
		})
	}
}

func TestHandshake_withoutAnAnswer(t *testing.T) {
	t.Parallel()

	ca := newTestCA(t)

	// Its own port is taken, so that no other process listens there meanwhile.
	taken, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(listen(t, func(net.Conn) {})))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { taken.Close() })

	tests := map[string]struct {
		accept func(net.Conn)
		limit  time.Duration
		class  error
		text   string
	}{
		"no server listens": {class: ErrUnreachable, text: "connection refused"},
		"silence": {accept: func(net.Conn) {}, limit: 500 * time.Millisecond, class: ErrUnreachable,
			text: "no response within"},
		"hangs up": {accept: func(c net.Conn) { c.Close() }, class: ErrUnreachable},
		"speaks another word": {accept: func(c net.Conn) { c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			class: ErrForeign, text: "does not use TLS"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			port := taken.LocalAddr().(*net.TCPAddr).Port
			if test.accept != nil {
				port = listen(t, test.accept)
			}

			o := testOptions(port, ca.credentials(t))
			if test.limit > 0 {
				o.Timeouts.Connect = test.limit
			}

			_, _, err := connect(t, o, "")
			if !errors.Is(err, test.class) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("err = %v, want %q with %q", err, test.class, test.text)
			}
		})
	}
}

// listen accepts TCP connections, reads the first words of each, hands it to accept
// and closes it at the end of the test.
func listen(t *testing.T, accept func(net.Conn)) int {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { l.Close() })

	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}

			t.Cleanup(func() { conn.Close() })

			if _, err := conn.Read(make([]byte, 1024)); err == nil {
				accept(conn)
			}
		}
	}()

	return l.Addr().(*net.TCPAddr).Port
}

// A server that finished TLS and never says a word of HTTP/2 is not connected to.
func TestObserve_silentAfterHandshake(t *testing.T) {
	t.Parallel()

	ca := newTestCA(t)

	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	l := tls.NewListener(raw, ca.member(t, nil))
	t.Cleanup(func() { l.Close() })

	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}

		t.Cleanup(func() { conn.Close() })

		_ = conn.(*tls.Conn).HandshakeContext(context.Background())
	}()

	o := testOptions(raw.Addr().(*net.TCPAddr).Port, ca.credentials(t))
	o.Timeouts.Connect = 500 * time.Millisecond

	if _, _, err := connect(t, o, ""); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "no response "+
		"within") {
		t.Errorf("err = %v, want unreachable", err)
	}
}

// What was learned about a peer must not be used on another connection.
func TestSession_neverReconnects(t *testing.T) {
	t.Parallel()

	ca := newTestCA(t)
	l := newLasting(t)
	first := serveOn(t, l, ca.member(t, nil))

	s, _, err := connect(t, testOptions(first.port(), ca.credentials(t)), "")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := s.version(t.Context()); Classify(err) != ErrUnsupported || !s.alive() {
		t.Fatalf("err = %v, alive %t, want an answer of a living session", err, s.alive())
	}

	first.server.Stop()

	second := serveOn(t, l.again(t), ca.member(t, nil))

	for range 3 {
		if _, err := s.version(t.Context()); Classify(err) != ErrUnreachable {
			t.Errorf("err = %v, want the lost connection", err)
		}
	}

	if s.alive() || second.accepted.Load() != 0 {
		t.Errorf("alive %t, %d new connections", s.alive(), second.accepted.Load())
	}
}

// A reader dials again when its session did not survive a restart, and only then.
func TestSession_readDialsAgain(t *testing.T) {
	t.Parallel()

	ca := newTestCA(t)
	l := newLasting(t)
	first := serveOn(t, l, ca.member(t, nil))

	f, err := NewFleet(testOptions(first.port(), ca.credentials(t)))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(f.Close)

	m := f.Machine(cluster.Machine{Name: "cp-1", Wanted: cluster.Wanted{Address: "127.0.0.1"}})
	if m != f.Machine(cluster.Machine{Name: "cp-1", Wanted: cluster.Wanted{Address: "127.0.0.1", UUID: "a"}}) {
		t.Error("the same machine has two APIs")
	}

	// No service is registered, so every answer is Unimplemented.
	ask := func() error {
		return m.read(t.Context(), func(ctx context.Context, s *session) error {
			_, err := s.version(ctx)

			return err
		})
	}

	for range 3 {
		if err := ask(); !errors.Is(err, ErrUnsupported) {
			t.Fatalf("err = %v, want an answer", err)
		}
	}

	first.server.Stop()

	second := serveOn(t, l.again(t), ca.member(t, nil))

	if err := ask(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("after a restart: err = %v, want an answer", err)
	}

	if a, b := first.accepted.Load(), second.accepted.Load(); a != 1 || b != 1 {
		t.Errorf("%d and %d connections, want one to each server", a, b)
	}

	second.server.Stop()

	if err := ask(); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a server: err = %v, want unreachable", err)
	}
}
