package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

// usualGracePeriod is the kube-apiserver's default for pods, in seconds.
const usualGracePeriod = 30

// kindOf finds a kind by its resource.
func kindOf(resource string) objects.Kind {
	for _, k := range objects.Kinds {
		if k.Resource == resource {
			return k
		}
	}

	panic("no kind " + resource)
}

// serveEviction deletes a pod unless a PodDisruptionBudget is in the way. There is no
// disruption controller: a budget allows what its status says, as with a kube-apiserver
// alone.
func (s *standIn) serveEviction(w http.ResponseWriter, r *http.Request, t target) {
	eviction := &policyv1.Eviction{}
	if err := readInto(r, eviction); err != nil {
		writeError(w, t, apierrors.NewBadRequest(err.Error()))

		return
	}

	pod, err := s.pod(t)
	if err != nil {
		writeError(w, t, err)

		return
	}

	if done := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed; !done &&
		pod.DeletionTimestamp.IsZero() {
		if !s.spendBudget(w, pod) {
			return
		}
	}

	options := metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		options = *eviction.DeleteOptions
	}

	if err := s.deletePod(t, options); err != nil {
		writeError(w, t, err)

		return
	}

	writeJSON(w, http.StatusCreated, metav1.Status{TypeMeta: statusMeta, Status: metav1.StatusSuccess})
}

// errBudgetSpent is about a budget that allows no disruption.
var errBudgetSpent = errors.New("no disruption is allowed")

// spendBudget takes an eviction from the pod's budget, or answers with the refusal text of the kube-apiserver
// (Kubernetes 1.36, registry/core/pod/storage/eviction.go).
func (s *standIn) spendBudget(w http.ResponseWriter, pod *corev1.Pod) bool {
	budgets, err := s.budgetsOf(pod)

	switch {
	case err != nil:
		writeStatus(w, http.StatusInternalServerError, "InternalError", err.Error())

		return false
	case len(budgets) == 0:
		return true
	case len(budgets) > 1:
		writeStatus(w, http.StatusInternalServerError, "InternalError",
			"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")

		return false
	}

	budget := budgets[0]

	_, err = s.Store.Update(kindOf("poddisruptionbudgets"), budget.Namespace, budget.Name,
		func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			allowed, _, err := unstructured.NestedInt64(old.Object, "status", "disruptionsAllowed")
			if err != nil {
				return nil, fmt.Errorf("read budget: %w", err)
			}

			if allowed <= 0 {
				return nil, errBudgetSpent
			}

			return old, unstructured.SetNestedField(old.Object, allowed-1, "status", "disruptionsAllowed")
		})
	if err == nil {
		return true
	}

	writeJSON(w, http.StatusTooManyRequests, metav1.Status{
		TypeMeta: statusMeta, Status: metav1.StatusFailure, Code: http.StatusTooManyRequests,
		Reason:  metav1.StatusReasonTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: policyv1.DisruptionBudgetCause,
			Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
				budget.Name, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy),
		}}},
	})

	return false
}

func (s *standIn) budgetsOf(pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	items, _ := s.Store.List(kindOf("poddisruptionbudgets"), pod.Namespace, objects.Selector{})

	var found []*policyv1.PodDisruptionBudget

	for _, item := range items {
		budget := &policyv1.PodDisruptionBudget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, budget); err != nil {
			return nil, fmt.Errorf("decode budget %s: %w", item.GetName(), err)
		}

		selected, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("read selector of budget %s: %w", item.GetName(), err)
		}

		if selected.Matches(labels.Set(pod.Labels)) {
			found = append(found, budget)
		}
	}

	return found, nil
}

func (s *standIn) pod(t target) (*corev1.Pod, error) {
	obj, err := s.Store.Get(t.kind, t.namespace, t.name)
	if err != nil {
		return nil, err
	}

	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, pod); err != nil {
		return nil, fmt.Errorf("decode pod %s: %w", t.name, err)
	}

	return pod, nil
}

// deletePod removes a pod that nothing runs any more at once. Any other one only gets
// its deletion timestamp: its kubelet removes it, if the machine lives.
func (s *standIn) deletePod(t target, options metav1.DeleteOptions) error {
	pod, err := s.pod(t)
	if err != nil {
		return err
	}

	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
		return t.kind.Conflict(t.name)
	}

	grace := gracePeriod(pod, options)
	if grace == 0 {
		return s.Store.Remove(t.kind, t.namespace, t.name)
	}

	if !pod.DeletionTimestamp.IsZero() {
		return nil
	}

	_, err = s.Store.Update(t.kind, t.namespace, t.name,
		func(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if obj.GetUID() != pod.UID {
				return nil, t.kind.Conflict(t.name)
			}

			end := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
			obj.SetDeletionTimestamp(&end)
			obj.SetDeletionGracePeriodSeconds(&grace)

			return obj, nil
		})

	return err
}

// runKubelets does the kubelets' part of deletions until ctx ends: see kubelets.
func (s *standIn) runKubelets(ctx context.Context) {
	ending := map[types.UID]bool{}
	seen := 0

	for {
		changes, changed := s.Store.Since(kindOf("pods"), seen)

		for _, c := range changes {
			seen = c.Version

			if c.Object.GetDeletionTimestamp() == nil || ending[c.Object.GetUID()] {
				continue
			}

			ending[c.Object.GetUID()] = true

			s.work.Go(func() { s.endPod(ctx, c.Object) })
		}

		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (s *standIn) endPod(ctx context.Context, obj *unstructured.Unstructured) {
	node, _, err := unstructured.NestedString(obj.Object, "spec", "nodeName")
	if err != nil || s.site.Machines.AwaitKubelet(ctx, node) != nil {
		return
	}

	t := target{kind: kindOf("pods"), namespace: obj.GetNamespace(), name: obj.GetName()}

	now, err := s.pod(t)
	if err != nil || now.UID != obj.GetUID() {
		return // another client deleted it by force
	}

	if err := s.Store.Remove(t.kind, t.namespace, t.name); err != nil && !apierrors.IsNotFound(err) {
		s.site.Logf("remove pod %s/%s: %v", t.namespace, t.name, err)
	}

	if now.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		s.site.Machines.RepeatReports(node)
	}
}

// gracePeriod is the grace period that a kube-apiserver derives from a request to delete a pod.
func gracePeriod(pod *corev1.Pod, options metav1.DeleteOptions) int64 {
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return 0
	case options.GracePeriodSeconds != nil:
		return *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	default:
		return usualGracePeriod
	}
}

// collectPods removes the pods of kube-system on a node that was deleted, as the pod
// garbage collector does.
func (s *standIn) collectPods(node string) {
	pods, _ := s.Store.List(kindOf("pods"), metav1.NamespaceSystem, objects.Selector{
		Labels: labels.Everything(), Fields: fields.OneTermEqualSelector("spec.nodeName", node),
	})

	for _, pod := range pods {
		// If another client deleted it in between, that is fine.
		_ = s.Store.Remove(kindOf("pods"), pod.GetNamespace(), pod.GetName())
	}
}
