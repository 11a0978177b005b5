package talossim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a child may take to end after SIGTERM.
const stopGrace = 3 * time.Second

// nursery starts children. On Linux a child dies with the thread that started it
// (Pdeathsig), so all are started by one thread that lives as long as the site.
type nursery struct {
	starts chan func()
	done   chan struct{}
}

func newNursery() *nursery {
	n := &nursery{starts: make(chan func()), done: make(chan struct{})}

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

// close ends the thread; every child must have been stopped before.
func (n *nursery) close() {
	close(n.starts)
	<-n.done
}

// child is a running program.
type child struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
	gone chan struct{} // closed when the program has ended
	once sync.Once
}

// start runs a program with its output in a file.
func (n *nursery) start(name, path, logFile string, args ...string) (*child, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}

	c := &child{name: name, log: out, gone: make(chan struct{})}
	c.cmd = exec.Command(path, args...) //nolint:gosec // a test binary the caller named
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = dieWithParent()

	started := make(chan error, 1)
	n.starts <- func() { started <- c.cmd.Start() }

	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close())
	}

	go func() {
		defer close(c.gone)

		// How a child ends is in its log; what it leaves undone shows in its API.
		_ = c.cmd.Wait()
		_ = out.Close()
	}()

	return c, nil
}

// stop asks the program to end, kills it after a while, and returns when it is gone.
func (c *child) stop() {
	c.once.Do(func() { _ = c.cmd.Process.Signal(syscall.SIGTERM) }) // it may be gone already

	timer := time.NewTimer(stopGrace)
	defer timer.Stop()

	select {
	case <-c.gone:
		return
	case <-timer.C:
	}

	_ = c.cmd.Process.Kill() // it may be gone by now
	<-c.gone
}

// awaitServing repeats probe until it succeeds, the program ends or ctx does.
func (c *child) awaitServing(ctx context.Context, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}

		select {
		case <-c.gone:
			return fmt.Errorf("%s ended before it served, see %s: %w", c.name, c.log.Name(), err)
		case <-ctx.Done():
			return ctx.Err()
		default:
		}

		if err := pause(ctx, probePeriod); err != nil {
			return err
		}
	}
}

// probePeriod is how often a starting child is asked whether it serves.
const probePeriod = 50 * time.Millisecond
