package cluster

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Strays are the nodes with the mark of this resource whose machines are outside the spec: a killed run created them,
// and its state was never written. They are nil while the Kubernetes API does not respond. [Unmanaged] leaves them
// out, like every node with a mark.
func Strays(want Spec, have Snapshot) []kubestate.Node {
	if !have.Kubernetes.Reachable || want.Owner == "" {
		return nil
	}

	known := nodesOf(slices.Concat(want.Machines, want.Removed, want.OtherControlPlanes), have)

	return slices.DeleteFunc(slices.Clone(have.Kubernetes.Nodes),
		func(n kubestate.Node) bool { return known[n.Name] || have.Kubernetes.Owners[n.Name] != want.Owner })
}
