package talossim

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rollOut does the part of the controllers for the workloads that Talos brings along:
// daemon sets and deployments of kube-system are rolled out as soon as they are written.
// There are no pods of theirs. It says whether there was something to do.
func rollOut(obj *unstructured.Unstructured, nodes func() int) (bool, error) {
	if obj.GetNamespace() != metav1.NamespaceSystem {
		return false, nil
	}

	generation := obj.GetGeneration()

	seen, _, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	if err != nil {
		return false, fmt.Errorf("read status of %s: %w", obj.GetName(), err)
	}

	if seen == generation && generation != 0 {
		return false, nil
	}

	switch obj.GetKind() {
	case "DaemonSet":
		all := int64(nodes())
		obj.Object["status"] = map[string]any{
			"observedGeneration": generation, "desiredNumberScheduled": all, "currentNumberScheduled": all,
			"updatedNumberScheduled": all, "numberReady": all, "numberAvailable": all, "numberMisscheduled": int64(0),
		}
	case "Deployment":
		replicas, found, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		if err != nil {
			return false, fmt.Errorf("read replicas of %s: %w", obj.GetName(), err)
		}

		if !found {
			replicas = 1
		}

		obj.Object["status"] = map[string]any{
			"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
			"readyReplicas": replicas, "availableReplicas": replicas,
			"conditions": []any{
				map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
		}
	default:
		return false, nil
	}

	return true, nil
}
