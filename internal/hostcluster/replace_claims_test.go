package hostcluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// deleteClaims deletes claims as a user does by hand. The claims stay while their pod has a node.
func (s site) deleteClaims(t *testing.T, spec workload.Spec) {
	t.Helper()

	for _, o := range s.claims(t, spec) {
		check(t, s.cluster.API().CoreV1().PersistentVolumeClaims(s.namespace).Delete(t.Context(), o.GetName(),
			metav1.DeleteOptions{}))
	}
}

// The pod of a machine whose claims were deleted is all that keeps its data: nothing but a wipe and a removal ends it.
func TestClaims_deletedOnesAreKeptByThePod(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 0)
	check(t, s.Ensure(t.Context(), spec))
	before, had := s.observe(t, spec, quiet), s.claims(t, spec)
	s.deleteClaims(t, spec)
	check(t, s.Ensure(t.Context(), spec))

	next := s.spec("dev", 1, 0)
	next.Machines[0].Image = "ghcr.io/siderolabs/talos:v1.13.1"

	for name, change := range map[string]func() error{
		"Replace": func() error { return s.Replace(t.Context(), next, "cp-0") },
		"Restart": func() error { return s.Restart(t.Context(), spec, "cp-0") },
	} {
		err := change()
		if err == nil || !wait.IsPermanent(err) {
			t.Fatalf("%s ends with %v", name, err)
		}

		for _, word := range []string{"/var-dev-cp-0", "/state-dev-cp-0", "dev-cp-0-0", "back up", "remove machine cp-0"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q is not in the error of %s: %v", word, name, err)
			}
		}
	}

	seen := s.observe(t, spec, func(workload.Observation) bool { return true }).Machines["cp-0"]
	if seen.PodUID != before.Machines["cp-0"].PodUID || !seen.Ready || len(seen.Outdated)+len(seen.Drift) > 0 ||
		!saying(seen.Stays, "/var-dev-cp-0 was deleted", "lost when its pod is replaced", "back up") {
		t.Errorf("the machine is %+v", seen)
	}

	for name, o := range s.claims(t, spec) {
		if o.GetUID() != uidOf(had, name) || o.GetDeletionTimestamp() == nil {
			t.Errorf("%s is not the one that was deleted", name)
		}
	}

	check(t, s.Wipe(t.Context(), spec, "cp-0"))
	s.hasNewClaims(t, spec, had)
	s.deleteClaims(t, spec)
	check(t, s.Remove(t.Context(), spec, "cp-0"))

	if left := s.claims(t, spec); len(left) > 0 {
		t.Errorf("there are still %d claims", len(left))
	}
}

// deleteClaim deletes one permanently, although a finalizer holds it.
func (s site) deleteClaim(t *testing.T, name string) {
	t.Helper()

	claims := s.cluster.API().CoreV1().PersistentVolumeClaims(s.namespace)
	claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)
	check(t, claims.Delete(t.Context(), name, metav1.DeleteOptions{}))

	if err := s.dropFinalizers(t, claim); !apierrors.IsNotFound(err) {
		check(t, err)
	}
}

// A machine that lost part of its data gets no empty volume beside the rest: its volumes are lost, until a wipe
// replaces them all.
func TestClaims_lostInPart(t *testing.T) {
	t.Parallel()

	s := newSite(t)

	for _, lost := range [][]string{{"state-dev-batch-0"}, {"var-dev-batch-0"}, {
		"state-dev-batch-0", "var-dev-batch-0", "etc-cni-dev-batch-0", "etc-kubernetes-dev-batch-0",
		"usr-libexec-kubernetes-dev-batch-0",
	}} {
		spec := s.spec("dev", 0, 1)
		spec.Machines[0].Pod.NodeSelector = map[string]string{"no": "where"}
		check(t, s.Ensure(t.Context(), spec))

		had := s.claims(t, spec)

		for _, name := range lost {
			s.deleteClaim(t, name)
		}

		gone := func(o workload.Observation) bool {
			m := o.Machines["batch/0"]

			return m.VolumesLost && m.Exists && !m.Complete && !saying(m.Drift, lost[0]) &&
				saying([]string{m.Diagnosis}, "PersistentVolumeClaim "+s.namespace+"/"+lost[0]+" no longer exists")
		}

		s.observe(t, spec, gone)
		check(t, s.Ensure(t.Context(), spec))
		check(t, s.Restart(t.Context(), spec, "batch/0"))
		check(t, s.Replace(t.Context(), spec, "batch/0"))
		s.observe(t, spec, gone)

		for name := range s.claims(t, spec) {
			if slices.Contains(lost[:1], strings.TrimPrefix(name, "PersistentVolumeClaim ")) {
				t.Errorf("%s was recreated beside the others", name)
			}
		}

		spec.Machines[0].Pod.NodeSelector = nil
		check(t, s.Wipe(t.Context(), spec, "batch/0"))
		check(t, s.Replace(t.Context(), spec, "batch/0"))
		s.hasNewClaims(t, spec, had)
		check(t, s.Remove(t.Context(), spec, "batch/0"))
	}
}

// What Talos writes at every start is made again, and a claim that lost its labels is not gone.
func TestClaims_thatAreNotLost(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 1)
	spec.Machines[0].Pod.NodeSelector = map[string]string{"no": "where"}
	check(t, s.Ensure(t.Context(), spec))
	s.deleteClaim(t, "etc-cni-dev-batch-0")

	s.observe(t, spec, func(o workload.Observation) bool {
		m := o.Machines["batch/0"]

		return !m.VolumesLost && !m.Complete && saying(m.Drift, "/etc-cni-dev-batch-0 does not exist")
	})
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, func(o workload.Observation) bool { return o.Machines["batch/0"].Complete })

	s.patchClaim(t, "var-dev-batch-0", `{"metadata":{"labels":{"talosop.dev/mark":null}}}`)

	if m := s.observe(t, spec, func(workload.Observation) bool { return true }).Machines["batch/0"]; m.VolumesLost {
		t.Errorf("a volume that is there is lost: %+v", m)
	}

	s.refusedFor(t, spec, "PersistentVolumeClaim "+s.namespace+"/var-dev-batch-0", "does not belong to this cluster",
		"talosop.dev/mark=mark-of-dev")
}

// If a claim is gone while its pod runs, the machine keeps its data as long as the pod exists.
func TestClaims_goneWhileThePodRuns(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 1)
	check(t, s.Ensure(t.Context(), spec))

	before := s.observe(t, spec, quiet).Machines["batch/0"]
	s.deleteClaim(t, "var-dev-batch-0")
	check(t, s.Ensure(t.Context(), spec))

	if err := s.Restart(t.Context(), spec, "batch/0"); !wait.IsPermanent(err) ||
		!saying([]string{err.Error()}, "/var-dev-batch-0", "remove machine batch/0") {
		t.Errorf("a restart ends with %v", err)
	}

	if m := s.observe(t, spec, func(workload.Observation) bool { return true }).Machines["batch/0"]; m.VolumesLost ||
		!m.Ready ||
		m.PodUID != before.PodUID || len(s.claims(t, spec)) != 4 ||
		!saying(m.Stays, "/var-dev-batch-0 was deleted", "lost when its pod is replaced") || len(m.Drift) > 0 {
		t.Errorf("the machine is %+v", m)
	}
}

// A wipe waits for claims that other clients hold.
func TestClaims_heldOnesDelayAWipe(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 1)
	check(t, s.Ensure(t.Context(), spec))
	s.observe(t, spec, quiet)

	had, claims := s.claims(t, spec), s.cluster.API().CoreV1().PersistentVolumeClaims(s.namespace)

	// Another client holds one for as long as its deletion takes.
	held, err := claims.Get(t.Context(), "var-dev-batch-0", metav1.GetOptions{})
	check(t, err)

	held.Finalizers = append(held.Finalizers, "example.com/slow")
	held, err = claims.Update(t.Context(), held, metav1.UpdateOptions{})
	check(t, err)
	s.deleteClaims(t, spec)

	pods := s.cluster.API().CoreV1().Pods(s.namespace)
	check(t, pods.Delete(t.Context(), "dev-batch-0-0", metav1.DeleteOptions{}))
	s.observe(t, spec, func(o workload.Observation) bool { return o.Machines["batch/0"].VolumesLost })
	check(t, s.Ensure(t.Context(), spec))

	ended := make(chan error, 1)

	go func() { ended <- s.Wipe(t.Context(), spec, "batch/0") }()

	await(t, func(ctx context.Context) error {
		now, err := claims.Get(ctx, held.Name, metav1.GetOptions{})
		if err == nil && len(now.Finalizers) > 1 {
			err = errors.New("it is not so yet")
		}

		return err
	})

	check(t, s.dropFinalizers(t, held))
	check(t, <-ended)
	s.hasNewClaims(t, spec, had)
}

// dropFinalizers lets a claim go.
func (s site) dropFinalizers(t *testing.T, claim *corev1.PersistentVolumeClaim) error {
	t.Helper()

	_, err := s.cluster.API().CoreV1().PersistentVolumeClaims(s.namespace).Patch(t.Context(), claim.Name,
		types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), byHand)

	return err
}

// It waits until a cluster runs with new claims only.
func (s site) hasNewClaims(t *testing.T, spec workload.Spec, had map[string]metav1.Object) {
	t.Helper()
	s.observe(t, spec, quiet)

	has := s.claims(t, spec)
	if len(has) != len(had) {
		t.Errorf("there are %d claims instead of %d", len(has), len(had))
	}

	for name, o := range has {
		if o.GetUID() == uidOf(had, name) || o.GetDeletionTimestamp() != nil {
			t.Errorf("%s is the one that was deleted", name)
		}
	}
}
