package talos

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a machine without a network. It answers connections that are made once it is up, and never those before.
type pipes struct {
	net.Listener

	begun time.Time
	up    time.Duration
	mu    sync.Mutex
	// dialed is when connections were made.
	dialed []time.Duration
	taken  chan net.Conn
	closed chan struct{}
}

func newPipes(t *testing.T, up time.Duration) *pipes {
	t.Helper()

	return &pipes{begun: time.Now(), up: up, taken: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	at := time.Since(p.begun)

	p.mu.Lock()
	p.dialed = append(p.dialed, at)
	p.mu.Unlock()

	here, there := net.Pipe()
	if at < p.up {
		return here, nil
	}

	select {
	case p.taken <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.taken:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)

	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A machine that takes connections and answers none is noticed within a second of its first answer, although nothing
// ever comes back on the connections from before.
func TestSilence_isNoLongerThanASecond(t *testing.T) {
	t.Parallel()

	for _, up := range []time.Duration{0, 2500 * time.Millisecond, 7500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ca, machine := newTestCA(t), newPipes(t, up)
			serveOn(t, machine, ca.member(t, nil))

			o := Options{Credentials: ca.credentials(t), Dial: machine.dial}.withDefaults()

			id, err := o.Credentials.parse()
			if err != nil {
				t.Fatal(err)
			}

			for {
				s, _, err := o.open(t.Context(), "127.0.0.1", id, "")
				if err == nil {
					s.close()

					break
				}
			}

			if late := time.Since(machine.begun) - up; late < 0 || late > time.Second {
				t.Errorf("up after %s, noticed %s later, with connections at %v", up, late, machine.dialed)
			}
		})
	}
}

// A server that is only slow is answered on the first connection, and the others are closed.
func TestSilence_keepsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca, machine := newTestCA(t), newPipes(t, 0)
		serveOn(t, machine, ca.member(t, nil))

		slow := func(ctx context.Context, network, address string) (net.Conn, error) {
			<-time.After(3 * time.Second)

			return machine.dial(ctx, network, address)
		}
		o := Options{Credentials: ca.credentials(t), Dial: slow}.withDefaults()

		s, _, err := connect(t, o, "")
		if err != nil || !s.alive() || time.Since(machine.begun) != 3*time.Second {
			t.Fatalf("%v after %s", err, time.Since(machine.begun))
		}

		s.close()
		<-time.After(time.Minute) // until the other connections are there, and closed
	})
}
