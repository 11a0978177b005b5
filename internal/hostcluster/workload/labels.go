package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Labels of the objects on a host cluster. Cluster and mark say whose an object is: names of clusters can be the same
// in two Terraform states, marks, which follow from the secrets, cannot.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelName      = "app.kubernetes.io/name"
	LabelCluster   = "talosop.dev/cluster"
	LabelMark      = "talosop.dev/mark"
	LabelPool      = "talosop.dev/pool"
	LabelMachine   = "talosop.dev/machine"
	LabelRole      = "talosop.dev/role"

	// managedBy and appName are the values of the labels that are the same everywhere.
	managedBy = "talosop"
	appName   = "talos"

	// wipeAnnotation of a StatefulSet records that a wipe of its machine has begun and has to be finished, even if
	// its process was killed.
	wipeAnnotation = "talosop.dev/wipe"
)

// podSuffix is what a StatefulSet puts behind its name for its first pod.
const podSuffix = "-0"

// identity are the labels that identify the cluster's objects.
func (s Spec) identity() map[string]string {
	return map[string]string{LabelCluster: s.Cluster, LabelMark: s.Mark}
}

// labels of the objects that machines of the cluster share. Labels of the user cannot replace those by which
// talosop finds its objects.
func (s Spec) labels() map[string]string {
	return merged(s.Labels, s.identity(), map[string]string{LabelManagedBy: managedBy, LabelName: appName})
}

// machineLabels are those of a machine's objects.
func (s Spec) machineLabels(m Machine) map[string]string {
	return merged(s.labels(), map[string]string{LabelPool: m.Pool, LabelMachine: m.Label(), LabelRole: string(m.Role)})
}

// machineSelector matches the objects of one machine, in a namespace.
func (s Spec) machineSelector(m Machine) map[string]string {
	return merged(s.identity(), map[string]string{LabelMachine: m.Label()})
}

// Selector matches all objects of the cluster in its namespace, for label selectors of lists.
func (s Spec) Selector() string { return labels.SelectorFromSet(s.identity()).String() }

// MachineSelector matches all objects of one machine of the cluster in its namespace.
func (s Spec) MachineSelector(m Machine) string {
	return labels.SelectorFromSet(s.machineSelector(m)).String()
}

// OwnPod reports whether the StatefulSet of a machine of the cluster made a pod. It checks the name, which is
// unique in a namespace, and the controller, because any pod can have the labels. A StatefulSet adopts a pod
// without a controller as soon as it sees it.
func (s Spec) OwnPod(pod *corev1.Pod) bool {
	set := s.Cluster + "-" + pod.Labels[LabelMachine]
	owner := metav1.GetControllerOf(pod)

	return s.Ours(pod) && pod.Name == set+podSuffix &&
		(owner == nil || owner.Kind == SetKind.name && owner.Name == set)
}

// Ours reports whether an object is the cluster's.
func (s Spec) Ours(o metav1.Object) bool {
	return labels.SelectorFromSet(s.identity()).Matches(labels.Set(o.GetLabels()))
}
