package machines_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// A namespace that refuses privileged pods is refused by the plan, or by the apply when it changed since, before
// anything is created. Both say what to do.
func TestContainer_namespaceWithoutPrivilegedPods(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	config := s.cluster("dev", tftest.NewBundle(t), 1, 1)
	help := "kubectl label namespace " + s.namespace + " pod-security.kubernetes.io/enforce=privileged --overwrite"

	for _, level := range []string{"baseline", "restricted"} {
		d := s.drive(t, "talosop_cluster")
		before := d.Plan(t, config).Must(t)

		s.enforce(t, level)

		for when, done := range map[string]tftest.Outcome{"plan": d.Plan(t, config),
			"apply": d.ApplyPlanned(t.Context(), t, config, before)} {
			diagnostics := tftest.Show(done.Diagnostics)
			if !done.Failed() || !strings.Contains(diagnostics, help) || !strings.Contains(diagnostics, "has the level "+level) {
				t.Errorf("%s: the %s says: %s", level, when, diagnostics)
			}

			for _, found := range done.Diagnostics {
				if at := `AttributeName("host").AttributeName("namespace")`; strings.Contains(found.Detail, help) &&
					found.Attribute.String() != at {
					t.Errorf("%s: the %s refuses it at %s", level, when, found.Attribute)
				}
			}
		}

		if !d.State.IsNull() {
			t.Errorf("%s: something was stored", level)
		}

		s.expectNothing(t, "dev")
		s.enforce(t, "privileged")
	}

	if diagnostics := tftest.Show(s.drive(t, "talosop_cluster").Plan(t, config).Must(t).Diagnostics); diagnostics != "" {
		t.Errorf("with what was said to do the plan says: %s", diagnostics)
	}
}

// enforce gives the namespace a Pod Security Standard, and waits until the host applies it.
func (s *hostSite) enforce(t *testing.T, level string) {
	t.Helper()

	_, err := s.API().CoreV1().Namespaces().Patch(t.Context(), s.namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%q}}}`, level), metav1.PatchOptions{})
	tftest.Must(t, err)

	privileged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "privileged"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "it", Image: "it", SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
		}}}}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		_, err := s.API().CoreV1().Pods(s.namespace).Create(ctx, privileged,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})

		switch denied := apierrors.IsForbidden(err); {
		case err != nil && !denied:
			return err
		case denied != (level != "privileged") || denied && !strings.Contains(err.Error(), level):
			return errors.Join(err, fmt.Errorf("the host does not go by the level %s yet", level))
		default:
			return nil
		}
	}))
}

// Outside of a pod in_cluster has no connection: plans and refreshes report it and continue with what is known, and
// an apply creates nothing.
func TestContainer_inClusterOutsideOfAPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")

	config := tftest.Config{
		"mode": "container", "name": "dev", "secrets": tftest.Bundle(), "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "replicas": 1,
		"host": tftest.Config{"in_cluster": true, "namespace": "talos"}, "deletion_protection": false,
	}
	words := "in_cluster requires that talosop runs in a pod of the host cluster"
	d := tftest.Drive(t, "talosop_control_plane", nil)

	if diagnostics := tftest.Show(d.Plan(t, config).Must(t).Diagnostics); !strings.Contains(diagnostics, words) {
		t.Errorf("the plan says: %s", diagnostics)
	}

	if done := d.Apply(t, config); !done.Failed() || !d.State.IsNull() ||
		!strings.Contains(tftest.Show(done.Diagnostics), words) {
		t.Errorf("the apply says: %s", tftest.Show(done.Diagnostics))
	}
}
