package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// stopGrace is how long a child may take to end after SIGTERM.
const stopGrace = time.Second

// Nursery starts children. On Linux a child dies with the thread that started it
// (Pdeathsig), so all are started by one thread that lives as long as the site.
type Nursery struct {
	starts chan func()
	done   chan struct{}
}

// NewNursery begins to start children, until Close.
func NewNursery() *Nursery {
	n := &Nursery{starts: make(chan func()), done: make(chan struct{})}

	go func() {
		defer close(n.done)

		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		for start := range n.starts {
			start()
		}
	}()

	return n
}

// Close ends the thread; every child must have been stopped before.
func (n *Nursery) Close() {
	close(n.starts)
	<-n.done
}

// Child is a running program.
type Child struct {
	name string
	Log  string
	end  context.CancelFunc // asks with SIGTERM, and after stopGrace no longer asks
	Gone chan struct{}      // closed when the program has ended
}

// Start runs a program with its output in a file.
func (n *Nursery) Start(name, path, logFile string, args ...string) (*Child, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	c := &Child{name: name, Log: logFile, end: cancel, Gone: make(chan struct{})}

	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = dieWithParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace

	started := make(chan error, 1)
	n.starts <- func() { started <- cmd.Start() }

	if err := <-started; err != nil {
		cancel()

		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close())
	}

	go func() {
		defer close(c.Gone)
		defer cancel()

		// How a child ends is in its log; what it leaves undone shows in its API.
		_ = cmd.Wait()
		_ = out.Close()
	}()

	return c, nil
}

// Stop asks the program to end, kills it after a while, and returns when it is gone.
func (c *Child) Stop() {
	c.end()
	<-c.Gone
}

// AwaitServing repeats probe until it succeeds, the program ends or ctx does.
func (c *Child) AwaitServing(ctx context.Context, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}

		select {
		case <-c.Gone:
			return fmt.Errorf("%s ended before it served, see %s: %w", c.name, c.Log, err)
		case <-ctx.Done():
			return ctx.Err()
		default:
		}

		if err := timing.Pause(ctx, probePeriod); err != nil {
			return err
		}
	}
}

// probePeriod is how often a starting child is asked whether it serves.
const probePeriod = 50 * time.Millisecond
