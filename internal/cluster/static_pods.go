package cluster

import (
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// staleStaticPod names a control plane pod that does not run with its present configuration yet. The kubelet applies
// a change within twenty seconds. Until then the old pod is ready, so the readiness of the machine does not show it.
// Right after other keys were sent, the pods that Talos wants do not show it either.
func staleStaticPod(s step.MachineState, node kubestate.Node) string {
	for _, name := range slices.Sorted(maps.Keys(s.StaticPods)) {
		pod, exists := node.StaticPods[name]

		switch {
		case !exists:
			return "its " + name + " has not started yet"
		case pod.Stamp != s.StaticPods[name],
			name == string(kubenames.KubeAPIServer) && s.StampsBefore[name] == pod.Stamp:
			return "its " + name + " does not use its new configuration yet"
		case !pod.Ready:
			return "its " + name + " is not ready"
		}
	}

	return ""
}
