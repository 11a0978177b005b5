package machineconfig

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubeletapis "k8s.io/kubelet/pkg/apis"
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
		func(key string) bool { return !restrictedLabel(key) })

	talos, ok := ReadTalosVersion(m.TalosVersion)
	if ok && talos.Major == 1 && talos.Minor < taintsAtRegistration {
		refused = append(refused, slices.Sorted(maps.Keys(f.Taints))...)
	}

	return refused
}

// restrictedLabel says whether a kubelet may not give its own node a label (Kubernetes 1.36,
// plugin/pkg/admission/noderestriction, getModifiedLabels and admitNode).
func restrictedLabel(key string) bool {
	namespace, _, qualified := strings.Cut(key, "/")
	in := func(parent string) bool { return namespace == parent || strings.HasSuffix(namespace, "."+parent) }

	return qualified && (in(corev1.LabelNamespaceNodeRestriction) ||
		(in("kubernetes.io") || in("k8s.io")) && !kubeletapis.IsKubeletLabel(key))
}

// warnOfNodeRestriction adds what NodeRestriction keeps from the node of a worker to what has no effect.
func (g *Generator) warnOfNodeRestriction(d *documents, facts Facts, m Machine) {
	refused := facts.refusedByKubernetes(m)
	if len(refused) == 0 {
		return
	}

	allowed := func(d *documents) bool { return len(factsOf(d.known).refusedByKubernetes(m)) == 0 }

	d.ineffective = append(d.ineffective, &FieldError{
		Field: g.origin(m, allowed),
		Found: strings.Join(refused, ", ") + " among the labels and taints of a worker",
		Allowed: "Kubernetes does not let a kubelet set it on its own node (NodeRestriction), and refuses all labels, " +
			"annotations and taints that come with it",
		Fix: "leave it out of the configuration, and set it with kubectl or another provider",
	})
}
