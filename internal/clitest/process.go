package clitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Process is a command that runs.
type Process struct {
	t        testing.TB
	name     string
	provider string
	cmd      *exec.Cmd
	started  time.Time
	stdout   buffer
	stderr   buffer
	done     chan struct{}
	result   Result
}

// Start starts a command. When the test ends before the command, the command and its provider are killed.
func (w *Workspace) Start(args ...string) *Process {
	w.t.Helper()

	p := &Process{t: w.t, name: w.cli.Name, provider: w.provider, done: make(chan struct{}), started: time.Now()}
	// Not CommandContext: a test that is over kills the command below, with the provider.
	command := append(append(slices.Clone(w.inside), w.cli.Path), args...)
	p.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // see above
	p.cmd.Dir, p.cmd.Env = w.Dir, w.env
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.result.Args = args

	if err := p.cmd.Start(); err != nil {
		w.t.Fatalf("start %s %s: %v", w.cli.Name, strings.Join(args, " "), err)
	}

	w.t.Cleanup(p.stop)

	go p.awaitExit()

	return p
}

// awaitExit waits for the command and stores its result.
func (p *Process) awaitExit() {
	defer close(p.done)

	err := p.cmd.Wait()

	p.result.Took = time.Since(p.started).Round(time.Millisecond)
	p.result.Stdout, p.result.Stderr = p.stdout.String(), p.stderr.String()
	p.result.Exit = p.cmd.ProcessState.ExitCode()
	p.result.CPU = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()

	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.result.Stderr += "\n" + err.Error()
	}
}

// Wait waits for the end of the command.
func (p *Process) Wait() Result {
	p.t.Helper()
	<-p.done
	p.t.Logf("%s %s: exit status %d after %s", p.name, strings.Join(p.result.Args, " "), p.result.Exit, p.result.Took)

	return p.result
}

// Done is closed when the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output is the command's output so far.
func (p *Process) Output() string { return p.stdout.String() + p.stderr.String() }

// Interrupt sends SIGINT to the CLI alone, as `kill -INT` does. (A Ctrl-C in a terminal reaches the provider too, which
// ignores it.)
func (p *Process) Interrupt() { p.signal(os.Interrupt) }

// KillCLI ends the CLI with SIGKILL: no state is written. The provider ends some seconds later (AwaitProviderEnd); what
// still runs when the test ends is killed.
func (p *Process) KillCLI() {
	p.t.Helper()
	p.signal(os.Kill)
}

// KillProvider ends the provider process with SIGKILL, as the kernel does when memory runs out. The test fails when
// there is none.
func (p *Process) KillProvider() {
	p.t.Helper()
	p.signalProvider(syscall.SIGKILL)
}

// CrashProvider ends the provider process as a fatal error of the Go runtime does, which prints what all goroutines are
// at. The test fails when there is none.
func (p *Process) CrashProvider() {
	p.t.Helper()
	p.signalProvider(syscall.SIGQUIT)
}

// AwaitProviderEnd waits until no provider process of the workspace runs. Linux only: elsewhere it returns at once.
func (p *Process) AwaitProviderEnd(ctx context.Context) error {
	return wait.Until(ctx, 100*time.Millisecond, func(context.Context) error {
		if pids := p.providers(); len(pids) > 0 {
			return fmt.Errorf("provider processes run: %v", pids)
		}

		return nil
	})
}

// ProviderRuns reports whether a provider process of the workspace runs.
func (p *Process) ProviderRuns() bool { return len(p.providers()) > 0 }

func (p *Process) signalProvider(s syscall.Signal) {
	p.t.Helper()

	pids := p.providers()
	if len(pids) == 0 {
		p.t.Fatalf("%s %s runs no provider\n%s", p.name, strings.Join(p.result.Args, " "), p.Output())
	}

	for _, pid := range pids {
		if err := send(pid, s); err != nil {
			p.t.Fatalf("send %s to provider %d: %v", s, pid, err)
		}
	}
}

func (p *Process) signal(s os.Signal) {
	p.t.Helper()

	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("send %s to %s: %v", s, p.name, err)
	}
}

// stop ends what is left of a command when its test is over.
func (p *Process) stop() {
	pids := p.providers()

	select {
	case <-p.done:
	default:
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Errorf("kill %s: %v", p.name, err)
		}

		<-p.done
	}

	for _, pid := range pids {
		if err := send(pid, syscall.SIGKILL); err != nil {
			p.t.Errorf("kill provider %d: %v", pid, err)
		}
	}
}

// providers returns the provider processes of the workspace that still run. They are identified by their program,
// which is unique to the workspace, because a process whose CLI is gone has another parent. Linux only: elsewhere
// there are none.
func (p *Process) providers() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}

	var pids []int

	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}

		// A process that ended meanwhile no longer has a link.
		exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err == nil && exe == p.provider {
			pids = append(pids, pid)
		}
	}

	return pids
}

// send signals a process that may have ended already.
func send(pid int, s syscall.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}

	if err := process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}

	return nil
}

// buffer is a bytes.Buffer that can be read while a command writes to it.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.buf.String()
}
