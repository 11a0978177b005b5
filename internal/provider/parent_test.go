package provider

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// ParentRole selects what a process of this test binary does instead of the tests: start a child, or be that.
const ParentRole = "TALOSOP_TEST_PARENT_ROLE"

func BeParentOrChild(role string) {
	if role == "parent" {
		startChild()
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed

		return
	}

	fmt.Println("ready")
	awaitParent(context.Background())
}

// startChild starts this program as the child, with the same standard output.
func startChild() {
	command := exec.CommandContext(context.Background(), os.Args[0])
	command.Env = append(os.Environ(), ParentRole+"=child")
	command.Stdout = os.Stdout

	if err := command.Start(); err != nil {
		panic(err)
	}
}

// A process whose parent is killed notices it: the pipe that only it has open is closed.
func TestAwait_parentIsKilled(t *testing.T) {
	t.Parallel()

	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}

	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), ParentRole+"=parent")
	command.Stdout = write

	if _, err := command.StdinPipe(); err != nil { // open until the process ends
		t.Fatal(err)
	}

	if err := command.Start(); err != nil {
		t.Fatal(err)
	}

	if err := write.Close(); err != nil {
		t.Fatal(err)
	}

	output := bufio.NewReader(read)
	if line, err := output.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatal(line, err)
	}

	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	_ = command.Wait() // it was killed

	if err := read.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}

	if rest, err := io.ReadAll(output); err != nil || len(rest) > 0 {
		t.Errorf("the child did not end: %q, %v", rest, err)
	}
}

// A context ends the wait for a living parent.
func TestAwait_context(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})

	go func() {
		awaitParent(ctx)
		close(ended)
	}()

	cancel()
	<-ended
}
