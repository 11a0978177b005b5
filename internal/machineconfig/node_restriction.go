package machineconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// A worker changes its Kubernetes node with the credentials of its kubelet, and a control plane as an administrator
// (Talos 1.13, controllers/k8s/node_apply.go, getK8sClient). The admission plugin NodeRestriction refuses a kubelet
// some labels and all changes of taints. With one of them it refuses the whole update: no label, annotation or taint of
// the configuration reaches the node. From Talos 1.14 the kubelet registers the node with its taints.

// taintsAtRegistration is the first minor version of Talos 1 whose workers register with taints.
const taintsAtRegistration = 14

// refusedByKubernetes are the labels and taints of a worker that NodeRestriction keeps from its node, in order.
func (f Facts) refusedByKubernetes(m Machine) []string {
	if m.Role != Worker {
		return nil
	}

	refused := slices.DeleteFunc(slices.Sorted(maps.Keys(f.Labels)),
		func(key string) bool { return !kubenames.RestrictedLabel(key) })

	talos, ok := ReadTalosVersion(m.TalosVersion)
	if ok && talos.Major == 1 && talos.Minor < taintsAtRegistration {
		refused = append(refused, slices.Sorted(maps.Keys(f.Taints))...)
	}

	return refused
}

// warnOfNodeRestriction reports which settings of a worker's node NodeRestriction blocks, at their source: in
// settings, or else in a patch.
func (g *Generator) warnOfNodeRestriction(d *documents, facts Facts, m Machine) {
	refused := facts.refusedByKubernetes(m)

	for _, l := range slices.Backward(g.levels(m)) {
		for _, of := range []*setting.Setting{setting.Labels, setting.Taints} {
			sets := func(key string) bool { return slices.Contains(l.values.Keys(of), key) }

			if here := slices.DeleteFunc(slices.Clone(refused), func(key string) bool { return !sets(key) }); len(here) > 0 {
				d.ineffective = append(d.ineffective, refusedByKubernetes(l.prefix+of.Name, here))
			}

			refused = slices.DeleteFunc(refused, sets)
		}
	}

	if len(refused) == 0 {
		return
	}

	allowed := func(d *documents) bool {
		still := factsOf(d.known).refusedByKubernetes(m)

		return !slices.ContainsFunc(refused, func(key string) bool { return slices.Contains(still, key) })
	}

	d.ineffective = append(d.ineffective, refusedByKubernetes(g.origin(m, allowed), refused))
}

func refusedByKubernetes(field string, keys []string) *FieldError {
	return &FieldError{
		Field: field,
		Found: strings.Join(keys, ", ") + " among the labels and taints of a worker",
		Allowed: "Kubernetes does not let a kubelet set it on its own node (NodeRestriction), and rejects all labels, " +
			"annotations and taints set with it",
		Fix: "remove it from the configuration, and set it with kubectl or another provider",
	}
}
