package gateway

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
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

// NewNamespace makes one that ends with the test, which is skipped where the right to make one is missing.
func NewNamespace(tb testing.TB) Namespace {
	tb.Helper()

	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		tb.Skip("network namespaces take root and the program ip (package iproute2)")
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

// Command is the prefix of commands in the namespace.
func (n Namespace) Command() []string { return []string{"ip", "netns", "exec", n.Name} }

func run(tb testing.TB, args string) {
	tb.Helper()

	if output, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil { //nolint:noctx // at once
		tb.Fatalf("ip %s: %v: %s", args, err, output)
	}
}
