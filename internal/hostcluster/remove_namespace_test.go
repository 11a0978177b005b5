package hostcluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// A namespace that talosop made is removed with the last cluster in it, and only when nothing else is there.
func TestRemove_namespaceThatTalosopMade(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	s.namespace += "-made"
	namespaces := s.cluster.API().CoreV1().Namespaces()

	t.Cleanup(func() { _ = namespaces.Delete(context.WithoutCancel(t.Context()), s.namespace, metav1.DeleteOptions{}) })

	one, two := s.spec("one", 1, 0), s.spec("two", 0, 0)
	one.CreateNamespace, two.CreateNamespace, one.Labels = true, true, map[string]string{"team": "blue"}

	strict := two
	strict.CreateNamespace = false
	s.refusedFor(t, strict, "namespace "+s.namespace+" does not exist", "create_namespace")

	o, err := s.Observe(t.Context(), one)
	check(t, err)

	if !saying(o.Missing, "Namespace "+s.namespace) {
		t.Errorf("missing: %q", o.Missing)
	}

	for _, spec := range []workload.Spec{one, two, one} {
		check(t, s.Ensure(t.Context(), spec))
	}

	s.observe(t, one, quiet)
	s.observe(t, two, quiet)

	made, err := namespaces.Get(t.Context(), s.namespace, metav1.GetOptions{})
	check(t, err)

	if made.Labels["pod-security.kubernetes.io/enforce"] != "privileged" || made.Labels["team"] != "blue" {
		t.Errorf("the namespace has labels %v", made.Labels)
	}

	_, err = namespaces.Patch(t.Context(), s.namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`), byHand)
	check(t, err)
	s.observe(t, two, func(o workload.Observation) bool { return saying(o.Drift, "Namespace", "privileged") })
	check(t, s.Ensure(t.Context(), two))
	s.observe(t, two, quiet)

	check(t, s.RemoveShared(t.Context(), two))
	s.observe(t, one, quiet)

	configs := s.cluster.API().CoreV1().ConfigMaps(s.namespace)
	_, err = configs.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "precious"}},
		metav1.CreateOptions{})
	check(t, err)
	check(t, s.Remove(t.Context(), one, "cp-0"))
	check(t, s.RemoveShared(t.Context(), one))

	_, err = configs.Get(t.Context(), "precious", metav1.GetOptions{})
	check(t, err)
	check(t, configs.Delete(t.Context(), "precious", metav1.DeleteOptions{}))
	check(t, s.RemoveShared(t.Context(), one))

	if _, err := namespaces.Get(t.Context(), s.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("of a namespace in which there is nothing else the host says %v", err)
	}
}

// A namespace of another owner is neither labeled nor removed.
func TestRemove_namespaceOfOthersStays(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 0)
	spec.CreateNamespace = true

	before, err := s.cluster.API().CoreV1().Namespaces().Get(t.Context(), s.namespace, metav1.GetOptions{})
	check(t, err)
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)
	check(t, s.RemoveShared(t.Context(), spec))

	after, err := s.cluster.API().CoreV1().Namespaces().Get(t.Context(), s.namespace, metav1.GetOptions{})
	check(t, err)

	if after.DeletionTimestamp != nil || len(after.Labels) != len(before.Labels) {
		t.Errorf("the namespace is now %+v", after.ObjectMeta)
	}
}
