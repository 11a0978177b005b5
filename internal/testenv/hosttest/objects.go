package hosttest

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Objects are the objects of a namespace that clusters in pods consist of, by kind and name, if they have a label.
func (h *Host) Objects(ctx context.Context, namespace, selector string) ([]string, error) {
	var (
		found  []string
		failed error
	)

	add := func(kind string, list runtime.Object, err error) {
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				object, err := meta.Accessor(item)
				if err == nil {
					found = append(found, kind+" "+object.GetName())
				}

				return err
			})
		}

		if failed == nil {
			failed = err
		}
	}

	options := metav1.ListOptions{LabelSelector: selector}
	core := h.API().CoreV1()

	sets, err := h.API().AppsV1().StatefulSets(namespace).List(ctx, options)
	add("StatefulSet", sets, err)

	services, err := core.Services(namespace).List(ctx, options)
	add("Service", services, err)

	claims, err := core.PersistentVolumeClaims(namespace).List(ctx, options)
	add("PersistentVolumeClaim", claims, err)

	pods, err := core.Pods(namespace).List(ctx, options)
	add("Pod", pods, err)

	budgets, err := h.API().PolicyV1().PodDisruptionBudgets(namespace).List(ctx, options)
	add("PodDisruptionBudget", budgets, err)

	policies, err := h.API().NetworkingV1().NetworkPolicies(namespace).List(ctx, options)
	add("NetworkPolicy", policies, err)

	return found, failed
}
