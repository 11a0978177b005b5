package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Tunnel lets programs on this machine reach a cluster that only its host cluster can reach: it
// listens on a port of the loopback interface, and what connects there is connected to the first
// target that answers. It does not look into what passes: the programs hold the credentials, and
// verify who answers.
type Tunnel struct {
	listener net.Listener
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	targets  []string
	// Leave releases what the tunnel uses.
	Leave func()

	warn   func(ctx context.Context, message string, err error)
	stop   context.CancelFunc
	active sync.WaitGroup
}

// OpenTunnel begins to listen. It dials only when a client connects. warn receives connections that could not be
// made, and leave is called at the end. Close has to be called.
func OpenTunnel(
	ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), leave func(),
	warn func(ctx context.Context, message string, err error), targets ...string,
) (*Tunnel, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on a local port: %w", err)
	}

	// It outlives the call that opens it.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &Tunnel{listener: listener, dial: dial, targets: targets, Leave: leave, warn: warn, stop: stop}

	t.run(ctx, func() { t.serve(ctx) })

	return t, nil
}

// Address is where it listens, as host:port.
func (t *Tunnel) Address() string { return t.listener.Addr().String() }

// Close ends the tunnel and all connections through it, and returns when they are gone.
func (t *Tunnel) Close() error {
	t.stop()

	err := t.listener.Close()

	t.active.Wait()
	t.Leave()

	return err
}

func (t *Tunnel) serve(ctx context.Context) {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				t.warn(ctx, "a local port to the cluster stopped accepting connections", err)
			}

			return
		}

		t.run(ctx, func() { t.carry(ctx, conn) })
	}
}

// run does a part of the tunnel's work in the background.
func (t *Tunnel) run(ctx context.Context, work func()) {
	t.active.Go(func() {
		if err := panics.Call(work); err != nil {
			t.warn(ctx, "a local port to the cluster failed", err)
		}
	})
}

// carry connects one program with the cluster until either side ends.
func (t *Tunnel) carry(ctx context.Context, near net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	far, err := t.reach(ctx)
	if err != nil {
		_ = near.Close() // the program sees a connection that ends

		t.warn(ctx, "a connection through the host cluster failed", err)

		return
	}

	ended := make(chan struct{}, 2)

	for _, direction := range [][2]net.Conn{{near, far}, {far, near}} {
		t.active.Go(func() {
			// Connections usually end because one side closes.
			_, _ = io.Copy(direction[0], direction[1])
			ended <- struct{}{}
		})
	}

	select {
	case <-ended:
	case <-ctx.Done():
	}

	_ = near.Close()
	_ = far.Close()
}

// reach connects to the first target that takes it.
func (t *Tunnel) reach(ctx context.Context) (net.Conn, error) {
	var problems []error

	for _, target := range t.targets {
		conn, err := t.dial(ctx, "tcp", target)
		if err == nil {
			return conn, nil
		}

		problems = append(problems, fmt.Errorf("%s: %w", target, err))
	}

	return nil, errors.Join(problems...)
}

// Tunnels are those of a process that ephemeral resources hold open. It is safe for concurrent use.
type Tunnels struct {
	Mu   sync.Mutex
	Open map[string]*Tunnel
}

// Keep stores a tunnel under its address.
func (t *Tunnels) Keep(opened *Tunnel) {
	t.Mu.Lock()
	defer t.Mu.Unlock()

	if t.Open == nil {
		t.Open = map[string]*Tunnel{}
	}

	t.Open[opened.Address()] = opened
}

// Close ends the tunnel of an address. One that is closed is no error.
func (t *Tunnels) Close(address string) error {
	t.Mu.Lock()
	opened := t.Open[address]
	delete(t.Open, address)
	t.Mu.Unlock()

	if opened == nil {
		return nil
	}

	return opened.Close()
}
