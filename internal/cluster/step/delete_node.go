package step

import "fmt"

// DeleteNode removes the Kubernetes Node object of a machine that was reset; Talos never removes it.
type DeleteNode struct {
	plain

	Machine string
	Node    string
}

// On names the machine.
func (s DeleteNode) On() string { return s.Machine }

func (s DeleteNode) String() string {
	return fmt.Sprintf("delete node %s of %s from Kubernetes", s.Node, s.Machine)
}

// Outdates is what Kubernetes tells.
func (DeleteNode) Outdates(Role) Reach { return AndKubernetes }
