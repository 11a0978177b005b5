package step

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// DeleteNode removes the Kubernetes Node object of a machine that was reset; Talos never removes it.
type DeleteNode struct {
	plain

	Machine string
	Node    string
}

// On names the machine.
func (s DeleteNode) On() string { return s.Machine }

func (s DeleteNode) String() string {
	return fmt.Sprintf("delete %s from Kubernetes", nodeOf(s.Node, s.Machine))
}

// Outdates includes the state of Kubernetes.
func (DeleteNode) Outdates(Role) Reach { return AndKubernetes }

func (s DeleteNode) forecast(m Model) {
	m.Kubernetes(func(k *kubestate.State) {
		k.Nodes = slices.DeleteFunc(k.Nodes, func(n kubestate.Node) bool { return n.Name == s.Node })
	})
}

func (DeleteNode) shows(f *Shown) { f.Open = append(f.Open, FieldNodeName, FieldKubernetesVersion) }

// ShowsInState is false.
func (DeleteNode) ShowsInState() bool { return false }
