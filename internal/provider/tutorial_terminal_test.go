//go:build unix

package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// terminal is a shell that reads commands, and what its programs printed.
type terminal struct {
	in *os.File

	mu     sync.Mutex
	output bytes.Buffer
	// shown is where the output of the last block begins.
	shown int
}

// newTerminal starts a shell. With the test, everything in it ends as on Ctrl-C.
func newTerminal(t *testing.T, folder string, env []string, setup string) *terminal {
	t.Helper()

	in, out, err := os.Pipe()
	tftest.Must(t, err)

	term := &terminal{in: out}
	shell := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc")
	shell.Dir, shell.Env, shell.Stdin, shell.Stdout, shell.Stderr = folder, env, in, term, term
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGINT) }
	shell.WaitDelay = 20 * time.Second

	tftest.Must(t, shell.Start())
	tftest.Must(t, in.Close())
	t.Cleanup(func() {
		tftest.Must(t, out.Close())

		var exit *exec.ExitError
		if err := shell.Wait(); !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
			tftest.Must(t, err)
		}
	})

	term.input(t, "trap 'status=$?' ERR\n"+setup+"\n")

	return term
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.output.Write(p)
}

// printed is everything that the programs printed.
func (s *terminal) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.output.String()
}

// input types commands.
func (s *terminal) input(t *testing.T, commands string) {
	t.Helper()

	_, err := fmt.Fprint(s.in, commands)
	tftest.Must(t, err)
}

// endOfBlock follows the output of a block, with the status of its last command that failed.
const endOfBlock = "== end of block, status "

// run types commands, waits for their end, and reports whether one failed.
func (s *terminal) run(t *testing.T, commands string) bool {
	t.Helper()
	s.input(t, "status=0\n"+commands+"echo '"+endOfBlock+"'$status\n")

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	status := ""
	err := wait.Until(ctx, 10*time.Millisecond, func(context.Context) error {
		var ended bool
		if _, status, ended = strings.Cut(s.printed()[s.shown:], endOfBlock); !ended || !strings.HasSuffix(status, "\n") {
			return errors.New("a command of the page still runs")
		}

		return nil
	})
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, commands, s.printed()[s.shown:])
	}

	return status != "0\n"
}

// colors are escape codes of a terminal.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// lines are the lines of the output of the last block.
func (s *terminal) lines() []string {
	output, _, _ := strings.Cut(s.printed()[s.shown:], endOfBlock)

	return strings.Split(strings.Trim(colors.ReplaceAllString(output, ""), "\n"), "\n")
}
