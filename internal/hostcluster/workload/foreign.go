package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// foreign says of an object that has a name of ours and is not ours whose it is, and what can be done.
func foreign(s Spec, k *Kind, o metav1.Object, h fmt.Stringer) error {
	help := fmt.Sprintf("remove or rename it, or give the cluster another name than %s or another namespace", s.Cluster)

	if LostLabels(o) {
		help = fmt.Sprintf("if only its labels were removed, restore them with `kubectl label %s -n %s %s %s=%s %s=%s "+
			"--overwrite`; otherwise %s",
			strings.ToLower(k.name), o.GetNamespace(), o.GetName(), LabelCluster, s.Cluster, LabelMark, s.Mark, help)
	}

	return fmt.Errorf("%s exists on %s and does not belong to this cluster: %s. It was not changed; %s", k.Of(o), h,
		Whose(o), help)
}

// LostLabels reports whether talosop made an object whose owner is unknown.
func LostLabels(o metav1.Object) bool {
	return o.GetLabels()[LabelMark] == "" &&
		slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
		})
}

// Whose is the owner according to the object itself.
func Whose(o metav1.Object) string {
	labels := o.GetLabels()
	makers := make([]string, 0, len(o.GetManagedFields()))

	for _, entry := range o.GetManagedFields() {
		if entry.Subresource == "" {
			makers = append(makers, entry.Manager)
		}
	}

	slices.Sort(makers)
	makers = slices.Compact(makers)

	switch owner := metav1.GetControllerOf(o); {
	case labels[LabelMark] != "":
		return fmt.Sprintf("it belongs to Talos cluster %s with other secrets (mark %s)", labels[LabelCluster],
			labels[LabelMark])
	case owner != nil:
		return fmt.Sprintf("it belongs to %s %s", owner.Kind, owner.Name)
	case labels[LabelManagedBy] != "" && labels[LabelManagedBy] != managedBy:
		return "it is managed by " + labels[LabelManagedBy]
	case len(makers) > 0:
		return "its fields were set by " + strings.Join(makers, ", ")
	default:
		return "its owner is unknown"
	}
}

// held returns why a deleted object still exists.
func held(o metav1.Object) string {
	switch {
	case o.GetDeletionTimestamp() == nil:
		return ""
	case len(o.GetFinalizers()) > 0:
		return fmt.Sprintf(", deleted at %s, waiting for finalizers %s", stamp(o.GetDeletionTimestamp()),
			strings.Join(o.GetFinalizers(), ", "))
	default:
		return fmt.Sprintf(", to be deleted by %s", stamp(o.GetDeletionTimestamp()))
	}
}

func stamp(t *metav1.Time) string { return t.UTC().Format(time.RFC3339) }
