package hostcluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

func (s site) patchBudget(t *testing.T, name, patch string) {
	t.Helper()

	_, err := s.cluster.API().PolicyV1().PodDisruptionBudgets(s.namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(patch), byHand)
	check(t, err)
}

// evictable says what the host would do with an eviction of a pod, once it runs, since one that never ran may always be
// evicted, and its budget is counted.
func (s site) evictable(t *testing.T, cluster, pod string, healthy, desired int32) bool {
	t.Helper()

	await(t, func(ctx context.Context) error {
		b, err := s.cluster.API().PolicyV1().PodDisruptionBudgets(s.namespace).Get(ctx, cluster, metav1.GetOptions{})
		if err == nil && (b.Status.ObservedGeneration != b.Generation || b.Status.CurrentHealthy != healthy ||
			b.Status.DesiredHealthy != desired) {
			err = fmt.Errorf("the budget counts %+v", b.Status)
		}

		if err != nil {
			return err
		}

		p, err := s.cluster.API().CoreV1().Pods(s.namespace).Get(ctx, pod, metav1.GetOptions{})
		if err == nil && p.Status.Phase == corev1.PodPending {
			err = fmt.Errorf("pod %s does not run yet", pod)
		}

		return err
	})

	err := s.cluster.API().PolicyV1().Evictions(s.namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod, Namespace: s.namespace},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
	if err != nil && !apierrors.IsTooManyRequests(err) {
		t.Fatal(err)
	}

	return err == nil
}

// A drain of the host takes one control plane at a time, and none that works beside one that does not; a single one is
// never held, because that would hold the drain for ever.
func TestBudget_ofControlPlanes(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	unready := map[string]string{kubetest.NeverReadyAnnotation: ""}

	three, broken, sole := s.spec("three", 3, 1), s.spec("broken", 3, 0), s.spec("sole", 1, 0)
	three.Machines[1].Pod.Annotations = unready
	broken.Machines[1].Pod.Annotations, broken.Machines[2].Pod.Annotations = unready, unready
	sole.Machines[0].Pod.Annotations = unready

	for _, spec := range []workload.Spec{three, broken, sole} {
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

}

// Control planes that leave are members of etcd until they are gone: the budget becomes that of a single one with the
// last of them, so that nothing is left for another apply.
func TestBudget_ofControlPlanesThatLeave(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 3, 0)
	spec.Machines[1].Pod.Annotations = map[string]string{kubetest.NeverReadyAnnotation: ""}
	spec.Machines[2].Pod.Annotations = spec.Machines[1].Pod.Annotations
	check(t, s.Ensure(t.Context(), spec))

	// The Spec of a run includes leaving machines, and its objects are for the staying ones.
	stays := spec
	stays.Machines = spec.Machines[:1:1]
	spec.Machines = slices.Clone(spec.Machines)
	spec.Machines[1].Leaving, spec.Machines[2].Leaving = true, true

	settled := func(when string) {
		t.Helper()
		check(t, s.Ensure(t.Context(), stays))

		for _, of := range []workload.Spec{spec, stays} {
			if o := s.observe(t, of, func(workload.Observation) bool { return true }); len(o.Drift)+len(o.Missing) > 0 {
				t.Errorf("%s the observation is %+v", when, o)
			}
		}
	}

	settled("while two leave")

	if s.evictable(t, "dev", "dev-cp-1-0", 1, 2) || s.policy(t, "dev") != policyv1.IfHealthyBudget {
		t.Error("a control plane that does not run and has yet to leave may be evicted")
	}

	check(t, s.Remove(t.Context(), spec, "cp-2"))
	settled("while one leaves")

	if got := s.policy(t, "dev"); got != policyv1.IfHealthyBudget {
		t.Errorf("while one leaves the budget says %s", got)
	}

	check(t, s.Remove(t.Context(), spec, "cp-1"))

	if got := s.policy(t, "dev"); got != policyv1.AlwaysAllow {
		t.Errorf("of a single control plane the budget says %s", got)
	}

	settled("when they are gone")
	check(t, s.Remove(t.Context(), spec, "cp-1"))
	check(t, s.Remove(t.Context(), spec, "cp-0"))
	check(t, s.RemoveShared(t.Context(), spec))
}

func (s site) policy(t *testing.T, cluster string) policyv1.UnhealthyPodEvictionPolicyType {
	t.Helper()

	b, err := s.cluster.API().PolicyV1().PodDisruptionBudgets(s.namespace).Get(t.Context(), cluster, metav1.GetOptions{})
	check(t, err)

	return *b.Spec.UnhealthyPodEvictionPolicy
}

// A budget that may not be deleted does not hold the end of its cluster.
func TestBudget_withoutTheRightToDelete(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	all := []string{"get", "list", "create", "patch", "delete"}

	var reported []string

	config := as(t, s.cluster, s.namespace, "keeper", rule("statefulsets", all...), rule("services", all...),
		rule("persistentvolumeclaims", all...),
		rule("pods", "get", "list", "delete"), rule("poddisruptionbudgets", all[:4]...))
	confined := site{Host: open(t, hostcluster.Options{
		Kubeconfig: config, Progress: func(line string) { reported = append(reported, line) },
	}), cluster: s.cluster, namespace: s.namespace}
	spec := confined.spec("dev", 1, 0)

	check(t, confined.Ensure(t.Context(), spec))
	check(t, confined.Remove(t.Context(), spec, "cp-0"))

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	check(t, confined.RemoveShared(ctx, spec))

	if !saying(reported, "PodDisruptionBudget "+s.namespace+"/dev stays", "forbidden") {
		t.Errorf("what is reported is %q", reported)
	}
}

// Credentials with rights for pods and none for budgets still get machines and a warning. They see no difference
// that an apply cannot remove.
func TestBudget_withoutTheRightToCreate(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	all := []string{"get", "list", "create", "patch", "delete"}
	rights := map[string][]string{"blind": {"patch"}, "reader": {"get", "list"}}

	for name, verbs := range rights {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var (
				mu       sync.Mutex
				reported []string
			)

			config := as(t, s.cluster, s.namespace, name, rule("statefulsets", all...), rule("services", all...),
				rule("persistentvolumeclaims", all...),
				rule("pods", "get", "list", "delete"), rule("pods/portforward", "create"), rule("poddisruptionbudgets", verbs...))
			confined := site{Host: open(t, hostcluster.Options{Kubeconfig: config, Progress: func(line string) {
				mu.Lock()
				defer mu.Unlock()

				reported = append(reported, line)
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

			if !saying(reported, "PodDisruptionBudget "+s.namespace+"/"+name, "forbidden") {
				t.Errorf("what is reported is %q", reported)
			}

			check(t, confined.Remove(t.Context(), spec, "cp-0"))
			check(t, confined.RemoveShared(t.Context(), spec))
		})
	}
}

// A foreign budget with the same name is refused before anything is made.
func TestBudget_foreign(t *testing.T) {
	t.Parallel()

	c := newChecked(t, privileged)
	_, err := c.cluster.API().PolicyV1().PodDisruptionBudgets(c.namespace).Create(t.Context(),
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "dev", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
		}, metav1.CreateOptions{})
	check(t, err)

	c.finds(t, c.spec(), want{"~namespace",
		"PodDisruptionBudget " + c.namespace + "/dev exists and does not belong to this cluster: it is managed by Helm."})

	s := site{Host: open(t, hostcluster.Options{Kubeconfig: api.Kubeconfig{Path: c.cluster.Kubeconfig()}}),
		cluster: c.cluster, namespace: c.namespace}
	spec := s.spec("dev", 1, 0)
	s.refusedFor(t, spec, "PodDisruptionBudget "+c.namespace+"/dev", "does not belong to this cluster")
	check(t, s.RemoveShared(t.Context(), spec))

	left, err := c.cluster.API().PolicyV1().PodDisruptionBudgets(c.namespace).Get(t.Context(), "dev", metav1.GetOptions{})
	check(t, err)

	if left.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("the budget of another client is %+v", left)
	}
}
