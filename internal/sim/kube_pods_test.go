package sim_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// addPod makes a running pod with a label of its name.
func addPod(t *testing.T, kube kubernetes.Interface, node, name string) {
	t.Helper()

	check(t, second(kube.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}, metav1.CreateOptions{})))
}

func TestEviction_usesUpTheBudget(t *testing.T) {
	m, _, kube := oneNode(t)
	ctx := within(t, time.Minute)
	budgets := kube.PolicyV1().PodDisruptionBudgets("default")

	addPod(t, kube, m.Hostname(), "db")

	evict := func() error {
		return kube.PolicyV1().Evictions("default").Evict(ctx,
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"}})
	}
	budget := func(name string) *policyv1.PodDisruptionBudget {
		b, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
		}, metav1.CreateOptions{})
		check(t, err)

		return b
	}

	b := budget("one")
	if err := evict(); !apierrors.IsTooManyRequests(err) ||
		!apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("eviction under a budget that has no status yet: %v", err)
	}

	budget("two")

	var status apierrors.APIStatus
	if err := evict(); !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		t.Errorf("eviction under two budgets: %v", err)
	}

	check(t, budgets.Delete(ctx, "two", metav1.DeleteOptions{}))

	b.Status.DisruptionsAllowed = 1
	check(t, second(budgets.UpdateStatus(ctx, b, metav1.UpdateOptions{})))
	check(t, evict())

	b, err := budgets.Get(ctx, "one", metav1.GetOptions{})
	check(t, err)

	if b.Status.DisruptionsAllowed != 0 {
		t.Errorf("%d disruptions are allowed after one", b.Status.DisruptionsAllowed)
	}
}

// Only its kubelet ends a pod, so one on a dead machine stays.
func TestPods_endOnlyThroughTheirKubelet(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 1)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)

	kube, pods := cluster.kubernetes(cps[0]), cluster.kubernetes(cps[0]).CoreV1().Pods("default")
	ctx := within(t, time.Minute)
	gone := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			if _, err := pods.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return errors.New("the pod is still there")
			}

			return nil
		}
	}

	dead := workers[0].Hostname()
	workers[0].PowerOff()

	addPod(t, kube, dead, "on-the-dead")
	addPod(t, kube, cps[0].Hostname(), "on-the-living")
	addPod(t, kube, "", "nowhere")

	for _, name := range []string{"on-the-dead", "on-the-living", "nowhere"} {
		check(t, pods.Delete(ctx, name, metav1.DeleteOptions{}))
	}

	eventually(t, "the pod nowhere", gone("nowhere"))
	eventually(t, "the pod on the living machine", gone("on-the-living"))

	pod, err := pods.Get(ctx, "on-the-dead", metav1.GetOptions{})
	check(t, err)

	if pod.DeletionTimestamp.IsZero() || *pod.DeletionGracePeriodSeconds != 30 {
		t.Errorf("deletion at %v after %v s, want half a minute", pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds)
	}

	other := metav1.NewPreconditionDeleteOptions("another-uid")
	if err := pods.Delete(ctx, "on-the-dead", *other); !apierrors.IsConflict(err) {
		t.Errorf("deletion of another pod of the name: %v", err)
	}

	workers[0].PowerOn()
	eventually(t, "the pod on the machine that came back", gone("on-the-dead"))
}
