package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
)

// reachedTwice is a connection to a machine that is also reached by a trusted route.
type reachedTwice struct {
	net.Conn

	beside func(ctx context.Context) (net.Conn, error)
}

func (b reachedTwice) Beside(ctx context.Context) (net.Conn, error) { return b.beside(ctx) }

// A server in maintenance mode is the machine if the trusted route shows the same certificate.
func TestHandshake_asksTheTrustedRoute(t *testing.T) {
	t.Parallel()

	ours := newTestCA(t)
	waiting, other, joined := maintenance(t, nil), maintenance(t, nil), ours.member(t, nil)
	failing := errors.New("no right to forward")

	for name, c := range map[string]struct {
		server, pod *tls.Config
		class       error
		text        string
	}{
		"the same":             {server: waiting, pod: waiting},
		"another server":       {server: other, pod: waiting, class: ErrForeign, text: "not the pod of the machine"},
		"the pod joined":       {server: waiting, pod: joined, class: ErrForeign, text: "not the pod of the machine"},
		"the pod is another's": {server: waiting, pod: newTestCA(t).member(t, nil), class: ErrForeign, text: "Talos CA"},
		"no trusted route":     {server: waiting, class: ErrUnreachable, text: failing.Error()},
		"a member":             {server: joined},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := testOptions(serveTLS(t, c.server).port(), ours.credentials(t))
			dial := o.Dial
			o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)

				return reachedTwice{conn, func(ctx context.Context) (net.Conn, error) {
					if c.pod == nil {
						return nil, failing
					}

					return dial(ctx, network, serveTLS(t, c.pod).Addr().String())
				}}, err
			}

			s, _, err := connect(t, o, "")
			if c.class == nil && (err != nil || !s.alive()) {
				t.Fatalf("err = %v", err)
			}

			if c.class != nil && (s != nil || Classify(err) != c.class || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("session %v, err = %v, want %q with %q", s, err, c.class, c.text)
			}
		})
	}
}
