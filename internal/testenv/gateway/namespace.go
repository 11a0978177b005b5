package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Namespace is a network namespace of Linux from which nothing of this machine is reached but one address.
type Namespace struct {
	// Name of it, for `ip netns exec`.
	Name string
	// Outside is the reachable address.
	Outside string
}

// NewNamespace makes one that ends with the test. It takes root, or sudo without a password. Where neither is, the test
// is skipped, and fails in CI.
func NewNamespace(tb testing.TB) Namespace {
	tb.Helper()

	if !mayMakeNamespaces(tb.Context()) {
		missing := tb.Skip
		if os.Getenv("CI") != "" {
			missing = tb.Fatal
		}

		missing("network namespaces take the program ip (package iproute2), and root or sudo without a password")
	}

	id := rand.IntN(1 << 14)
	n := Namespace{Name: fmt.Sprintf("talosop-%d", id), Outside: fmt.Sprintf("198.18.%d.%d", id>>6, id&63<<2+1)}
	inside := fmt.Sprintf("198.18.%d.%d", id>>6, id&63<<2+2)
	near, far := fmt.Sprintf("tson%d", id), fmt.Sprintf("tsof%d", id)

	run(tb, "netns add "+n.Name)
	tb.Cleanup(func() { run(tb, "netns delete "+n.Name) })
	run(tb, fmt.Sprintf("link add %s type veth peer name %s netns %s", near, far, n.Name))
	run(tb, fmt.Sprintf("address add %s/30 dev %s", n.Outside, near))
	run(tb, fmt.Sprintf("link set %s up", near))
	run(tb, fmt.Sprintf("-n %s address add %s/30 dev %s", n.Name, inside, far))
	run(tb, fmt.Sprintf("-n %s link set %s up", n.Name, far))
	run(tb, fmt.Sprintf("-n %s link set lo up", n.Name))

	return n
}

// Command is the prefix of commands in the namespace, which run as the user of the test.
func (n Namespace) Command() []string {
	command := asRoot("ip", "netns", "exec", n.Name)
	if os.Geteuid() == 0 {
		return command
	}

	// sudo replaces the search path.
	return append(command, "setpriv", "--reuid", strconv.Itoa(os.Geteuid()), "--regid", strconv.Itoa(os.Getegid()),
		"--clear-groups", "env", "PATH="+os.Getenv("PATH"))
}

func mayMakeNamespaces(ctx context.Context) bool {
	command := asRoot("ip", "netns", "list")

	return exec.CommandContext(ctx, command[0], command[1:]...).Run() == nil
}

// asRoot is a command with the rights of root.
func asRoot(command ...string) []string {
	if os.Geteuid() == 0 {
		return command
	}

	return append([]string{"sudo", "-n", "-E"}, command...)
}

func run(tb testing.TB, args string) {
	tb.Helper()

	command := asRoot(append([]string{"ip"}, strings.Fields(args)...)...)

	if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil { //nolint:noctx // at once
		tb.Fatalf("ip %s: %v: %s", args, err, output)
	}
}
