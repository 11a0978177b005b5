package hostcluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/addon/addontest"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

func (s site) patchBudget(t *testing.T, name, patch string) {
	t.Helper()

	_, err := s.cluster.API().PolicyV1().PodDisruptionBudgets(s.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), byHand)
	check(t, err)
}

// evictable says what the host would do with an eviction of a pod, once its budget is counted.
func (s site) evictable(t *testing.T, cluster, pod string, healthy, desired int32) bool {
	t.Helper()

	await(t, func(ctx context.Context) error {
		b, err := s.cluster.API().PolicyV1().PodDisruptionBudgets(s.namespace).Get(ctx, cluster, metav1.GetOptions{})
		if err == nil && (b.Status.ObservedGeneration != b.Generation || b.Status.CurrentHealthy != healthy || b.Status.DesiredHealthy != desired) {
			err = fmt.Errorf("the budget counts %+v", b.Status)
		}

		return err
	})

	err := s.cluster.API().PolicyV1().Evictions(s.namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: s.namespace}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
	if err != nil && !apierrors.IsTooManyRequests(err) {
		t.Fatal(err)
	}

	return err == nil
}

// A drain of the host takes one control plane at a time, and none that works beside one that does not; a single one is never
// held, because that would hold the drain for ever.
func TestBudgetOfControlPlanes(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	unready := map[string]string{addontest.NeverReadyAnnotation: ""} // one that never ran may always be evicted

	three, broken, sole := s.spec("three", 3, 1), s.spec("broken", 3, 0), s.spec("sole", 1, 0)
	three.Machines[1].Pod.Annotations = unready
	broken.Machines[1].Pod.Annotations, broken.Machines[2].Pod.Annotations = unready, unready
	sole.Machines[0].Pod.Annotations = unready

	for _, spec := range []hostcluster.Spec{three, broken, sole} {
		check(t, s.Ensure(t.Context(), spec))
	}

	for _, c := range []struct {
		pod              string
		healthy, desired int32
		goes             bool
	}{
		{"three-cp-0-0", 2, 2, false},
		{"three-cp-1-0", 2, 2, true},
		{"broken-cp-0-0", 1, 2, false},
		{"broken-cp-1-0", 1, 2, false},
		{"sole-cp-0-0", 0, 0, true},
	} {
		cluster, _, _ := strings.Cut(c.pod, "-")
		if goes := s.evictable(t, cluster, c.pod, c.healthy, c.desired); goes != c.goes {
			t.Errorf("that an eviction takes %s is %t", c.pod, goes)
		}
	}

	// A worker is not counted.
	err := s.cluster.API().PolicyV1().Evictions(s.namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: "three-batch-0-0", Namespace: s.namespace},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
	check(t, err)

	// Two that leave make the third a single one, and the Spec of an observation may still have them.
	for i := range three.Machines[1:3] {
		three.Machines[1+i].Leaving = true
	}

	stays := three
	stays.Machines = []hostcluster.Machine{three.Machines[0], three.Machines[3]}
	check(t, s.Ensure(t.Context(), stays))

	if o := s.observe(t, three, func(hostcluster.Observation) bool { return true }); len(o.Drift)+len(o.Missing) > 0 {
		t.Errorf("while two leave the observation is %+v", o)
	}

	if !s.evictable(t, "three", "three-cp-1-0", 2, 2) {
		t.Error("a control plane that does not run, beside one that is to be the only one, is held")
	}
}

// Whoever has the pods and no budgets gets machines all the same, is told, and sees no difference that no apply takes away.
func TestBudgetsThatMayNotBeMade(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	all := []string{"get", "list", "create", "patch", "delete"}
	rights := map[string][]string{"blind": {"patch"}, "reader": {"get", "list"}}

	for name, verbs := range rights {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var (
				mu   sync.Mutex
				told []string
			)

			config := as(t, s.cluster, s.namespace, name, rule("statefulsets", all...), rule("services", all...), rule("persistentvolumeclaims", all...),
				rule("pods", "get", "list", "delete"), rule("pods/portforward", "create"), rule("poddisruptionbudgets", verbs...))
			confined := site{Host: open(t, hostcluster.Options{Kubeconfig: config, Progress: func(line string) {
				mu.Lock()
				defer mu.Unlock()

				told = append(told, line)
			}}), cluster: s.cluster, namespace: s.namespace}
			spec := confined.spec(name, 1, 0)

			checked := checked{cluster: s.cluster, namespace: s.namespace, config: config}
			findings := checked.check(t, spec)

			for _, f := range findings {
				if !f.Warning {
					t.Errorf("there is %+v", f)
				}
			}

			if len(findings) == 0 || !strings.Contains(encoded(t, findings), "poddisruptionbudgets.policy") {
				t.Errorf("nothing is said of the budgets: %+v", findings)
			}

			check(t, confined.Ensure(t.Context(), spec))
			confined.observe(t, spec, quiet)

			mu.Lock()
			defer mu.Unlock()

			if !saying(told, "PodDisruptionBudget "+s.namespace+"/"+name, "forbidden") {
				t.Errorf("what is told is %q", told)
			}

			check(t, confined.Remove(t.Context(), spec, "cp-0"))
			check(t, confined.RemoveShared(t.Context(), spec))
		})
	}
}

// A budget of somebody else that has the name is refused, before anything is made.
func TestBudgetsOfOthers(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	_, err := c.cluster.API().PolicyV1().PodDisruptionBudgets(c.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "dev", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
	}, metav1.CreateOptions{})
	check(t, err)

	c.finds(t, c.spec(), want{"~namespace", "PodDisruptionBudget " + c.namespace + "/dev exists and is not this cluster's: it is managed by Helm."})

	s := site{Host: open(t, hostcluster.Options{Kubeconfig: kubernetes.Kubeconfig{Path: c.cluster.Kubeconfig()}}), cluster: c.cluster, namespace: c.namespace}
	spec := s.spec("dev", 1, 0)
	s.refusedFor(t, spec, "PodDisruptionBudget "+c.namespace+"/dev", "not this cluster's")
	check(t, s.RemoveShared(t.Context(), spec))

	left, err := c.cluster.API().PolicyV1().PodDisruptionBudgets(c.namespace).Get(t.Context(), "dev", metav1.GetOptions{})
	check(t, err)

	if left.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("the budget of somebody else is %+v", left)
	}
}
