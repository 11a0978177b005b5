package machines_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The next apply repairs a wrong image, although the pods with that image never answer.
func TestContainer_brokenImageIsCorrected(t *testing.T) {
	testenv.BeforeRelease(t, "TestPods_oneThatDoesNotStart", "TestContainer_statefulSetEditedByHand")
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("wrong", tftest.NewBundle(t), 1, 1)

	d.Ready(t, config)

	volumes := s.claimUIDs(t)

	config = tftest.With(config, "ghcr.io/siderolabs/nothing", "host", "image")
	if done := d.ApplyIn(s.until(t, "wrong-cp-0-0", "nothing"), t, config); !done.Failed() ||
		!strings.Contains(s.imageOf(t, "wrong-cp-0-0"), "nothing") {
		t.Fatalf("there is no such image: %s", tftest.Show(done.Diagnostics))
	}

	config = tftest.With(config, "ghcr.io/siderolabs/talos", "host", "image")

	d.Refresh(t).Must(t)
	d.Ready(t, config)
	d.ExpectEmpty(t, "after the image was corrected", config)
	s.expectEtcd(t, "wrong", 1)

	if got := s.imageOf(t, "wrong-cp-0-0"); got != "ghcr.io/siderolabs/talos:v1.13.0" {
		t.Errorf("the image is %s", got)
	}

	for name, uid := range s.claimUIDs(t) {
		if volumes[name] != uid {
			t.Errorf("volume %s is another one", name)
		}
	}

	s.destroy(t, d, "wrong")
}

// until ends when a pod has an image whose name contains words. Then the run that waits for the pod is canceled.
func (s *hostSite) until(t *testing.T, pod, words string) context.Context {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)

	go func() {
		defer cancel()

		_ = wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error { // until the test ends
			found, err := s.API().CoreV1().Pods(s.namespace).Get(ctx, pod, metav1.GetOptions{})
			if err == nil && !strings.Contains(found.Spec.Containers[0].Image, words) {
				err = errors.New("it is the one of before")
			}

			return err
		})
	}()

	return ctx
}

// A StatefulSet whose image was changed by hand is repaired, and the pod, which never had that image, stays in
// service.
func TestContainer_statefulSetEditedByHand(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	m := momentsOf(t, s)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("edited", tftest.NewBundle(t), 1, 1)

	d.Ready(t, config)

	before := s.podUIDs(t)

	for _, name := range []string{"edited-cp-0", "edited-batch-0"} {
		_, err := s.API().AppsV1().StatefulSets(s.namespace).Patch(t.Context(), name, types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"talos","image":"registry.invalid/talos:v1.13.0"}]}}}}`),
			metav1.PatchOptions{FieldManager: "kubectl-set"})
		tftest.Must(t, err)
	}

	// The controller has to see it, or no pod would have another template.
	tftest.Must(t, wait.Until(t.Context(), 20*time.Millisecond, func(ctx context.Context) error {
		for name := range before {
			set, err := s.API().AppsV1().StatefulSets(s.namespace).Get(ctx, strings.TrimSuffix(name, "-0"), metav1.GetOptions{})
			if err != nil {
				return err
			}

			if set.Status.ObservedGeneration < set.Generation {
				return errors.New(set.Name + " was not looked at")
			}
		}

		return nil
	}))

	if operations := operationsIn(t, d.RefreshedPlan(t, config)); !strings.Contains(operations,
		"repair on the host cluster, for cp-0: StatefulSet") ||
		strings.Contains(operations, "replace pod") {
		t.Errorf("the plan says:\n%s", operations)
	}

	m.listen(nil)
	d.Ready(t, config)
	d.ExpectEmpty(t, "after the repair", config)

	if got := m.with("host "); len(got) > 0 {
		t.Errorf("the host was asked to %v", got)
	}

	for name, uid := range s.podUIDs(t) {
		if before[name] != uid {
			t.Errorf("the repair replaced pod %s", name)
		}
	}

	s.destroy(t, d, "edited")
}

// A control plane loses its configuration, because its claim was deleted by hand, and still has its etcd data. It
// does not get an empty volume beside that data: both are replaced, and it joins the others again.
func TestContainer_losesOneOfItsVolumes(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestClaims_lostInPart", "TestContainer_lostVolumesAreReplaced", "TestPods_oneWhoseVolumesAreLost")

	s := newHostSite(t)
	m := momentsOf(t, s)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("halved", tftest.NewBundle(t), 3, 0)

	d.Ready(t, config)

	volumes := s.claimUIDs(t)

	tftest.Must(t, s.API().CoreV1().PersistentVolumeClaims(s.namespace).Delete(t.Context(), "state-halved-cp-1",
		metav1.DeleteOptions{}))

	if diagnostics := tftest.Show(d.Refresh(t).Must(t).Diagnostics); !strings.Contains(diagnostics,
		"cp-1: PersistentVolumeClaim "+s.namespace+"/state-halved-cp-1 was deleted") {
		t.Errorf("while the pod keeps the claim a refresh says: %s", diagnostics)
	}

	if operations := operationsIn(t, d.RefreshedPlan(t, config)); strings.Contains(operations, "repair on the host") ||
		strings.Contains(operations, "replace volumes") {
		t.Errorf("while the pod keeps the claim the plan says:\n%s", operations)
	}
	tftest.Must(t, s.KillPod(t.Context(), s.namespace, "halved-cp-1-0"))

	tftest.Must(t, wait.Until(t.Context(), 20*time.Millisecond, func(ctx context.Context) error {
		_, err := s.API().CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, "state-halved-cp-1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(err, errors.New("the claim is still there"))
	}))

	if operations := operationsIn(t, d.RefreshedPlan(t, config)); !strings.Contains(operations,
		"replace volumes of control plane cp-1 (its data is lost") ||
		strings.Contains(operations, "repair on the host") {
		t.Errorf("the plan says:\n%s", operations)
	}

	s.watchPlanes(t, m, "halved", 3)

	if diagnostics := tftest.Show(d.Refresh(t).Must(t).Diagnostics); !strings.Contains(diagnostics,
		"state-halved-cp-1 no longer exists") {
		t.Errorf("the refresh says: %s", diagnostics)
	}

	d.Ready(t, config)
	d.ExpectEmpty(t, "after a volume was lost", config)

	if got := m.with("host "); !slices.Equal(got, []string{"Wipe cp-1"}) {
		t.Errorf("the host was asked to %v", got)
	}

	s.expectEtcd(t, "halved", 3)

	for name, uid := range s.claimUIDs(t) {
		if recreated := volumes[name] != uid; recreated != strings.HasSuffix(name, "-cp-1") {
			t.Errorf("that volume %s is another one is %t", name, recreated)
		}
	}

	m.listen(nil)
	s.destroy(t, d, "halved")
}
