package kubenames

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// RestrictedLabel reports whether the admission plugin NodeRestriction keeps a kubelet from giving its own node a label
// (Kubernetes 1.36, plugin/pkg/admission/noderestriction, getModifiedLabels and admitNode).
func RestrictedLabel(key string) bool {
	namespace, _, qualified := strings.Cut(key, "/")
	in := func(parent string) bool { return namespace == parent || strings.HasSuffix(namespace, "."+parent) }

	return qualified && (in(corev1.LabelNamespaceNodeRestriction) ||
		(in("kubernetes.io") || in("k8s.io")) && !kubeletapis.IsKubeletLabel(key))
}
