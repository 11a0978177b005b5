package machines_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// What another resource of the same apply may create is no error of the plan, and an error of the apply when it is
// missing.
func TestContainerPlan_waitsForOtherResources(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	base := func() tftest.Config { return s.cluster("dev", tftest.NewBundle(t), 1, 0) }

	_, err := s.API().CoreV1().ResourceQuotas(s.namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourceServices: clusterhandle.QuantityOr("0", "0")}},
	}, metav1.CreateOptions{})
	tftest.Must(t, err)

	for name, test := range map[string]struct {
		config tftest.Config
		words  string
	}{
		"a namespace": {tftest.With(base(), s.namespace+"-later", "host", "namespace"),
			"has no namespace " + s.namespace + "-later"},
		"a storage class": {tftest.With(base(), tftest.Config{"storage": tftest.Config{"class": "later"}}, "host", "pod"),
			"Storage class later does not exist"},
		"a priority class": {tftest.With(base(), tftest.Config{"priority_class": "later"}, "host", "pod"),
			"Priority class later does not exist"},
		"a quota": {base(), "limited: services=0"},
	} {
		d := s.drive(t, "talosop_cluster")
		planned := d.Plan(t, test.config)

		if diagnostics := tftest.Show(planned.Diagnostics); planned.Failed() || !strings.Contains(diagnostics, test.words) ||
			!strings.Contains(diagnostics, "depends_on") {
			t.Errorf("%s, in a plan: %s", name, diagnostics)
		}

		if planned.Failed() {
			continue
		}

		done := d.ApplyPlanned(t.Context(), t, test.config, planned)
		if diagnostics := tftest.Show(done.Diagnostics); !done.Failed() || !strings.Contains(diagnostics, test.words) || !d.State.IsNull() {
			t.Errorf("%s, in an apply: %s", name, diagnostics)
		}
	}

	s.expectNothing(t, "dev")
}

// An existing namespace that refuses privileged pods is an error of the plan.
func TestContainerPlan_refusesCertainFailures(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	closed := s.namespace + "-closed"

	_, err := s.API().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: closed,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}},
	}, metav1.CreateOptions{})
	tftest.Must(t, err)

	t.Cleanup(func() {
		tftest.Must(t, s.API().CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), closed,
			metav1.DeleteOptions{}))
	})

	d := s.drive(t, "talosop_cluster")
	if planned := d.Plan(t, tftest.With(s.cluster("dev", tftest.NewBundle(t), 1, 0), closed, "host",
		"namespace")); !planned.Failed() {
		t.Errorf("the plan says: %s", tftest.Show(planned.Diagnostics))
	}
}

// The objects of a replaced resource still exist when its successor is planned, with new secrets.
func TestContainerPlan_ofReplacements(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	config := tftest.With(s.container("dev", tftest.NewBundle(t)), 1, "replicas")
	renewed := tftest.With(maps.Clone(config), tftest.NewBundle(t), "secrets")
	d := s.drive(t, "talosop_control_plane")
	d.Ready(t, config)

	successor := s.drive(t, "talosop_control_plane")

	planned := successor.Plan(t, renewed)
	if diagnostics := tftest.Show(planned.Diagnostics); planned.Failed() || !strings.Contains(diagnostics, "does not belong to this cluster") {
		t.Fatalf("the plan says: %s", diagnostics)
	}

	if done := successor.ApplyPlanned(t.Context(), t, renewed, planned); !done.Failed() || !successor.State.IsNull() {
		t.Errorf("an apply took what another resource has: %s", tftest.Show(done.Diagnostics))
	}

	d.Apply(t, nil).Must(t)
	planned = successor.Plan(t, renewed).Must(t)
	successor.ApplyPlanned(t.Context(), t, renewed, planned).Must(t)
	s.destroy(t, successor, "dev")
}

// A missing kubeconfig does not fail a refresh: the record of the machines stays, with a warning.
func TestContainer_refreshWithoutAKubeconfig(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_control_plane")

	content, err := os.ReadFile(s.Kubeconfig())
	tftest.Must(t, err)

	at := filepath.Join(t.TempDir(), "kubeconfig")
	tftest.Must(t, os.WriteFile(at, content, 0o600))

	config := tftest.With(tftest.With(s.container("dev", tftest.NewBundle(t)), 1, "replicas"), at, "host",
		"kubeconfig_path")

	done := d.Ready(t, config)
	if diagnostics := tftest.Show(done.Diagnostics); strings.Contains(diagnostics, "write-only") {
		t.Errorf("the create says: %s", diagnostics)
	}

	// The first refresh invalidates the plan.
	before := d.Refresh(t).Must(t).Value

	tftest.Must(t, os.Remove(at))

	read := d.Refresh(t).Must(t)
	if diagnostics := tftest.Show(read.Diagnostics); !strings.Contains(diagnostics, "[host_not_read]") {
		t.Errorf("the refresh says: %s", diagnostics)
	}

	if !d.State.Equal(before) {
		t.Error("the refresh changed the state")
	}

	if gone := d.Apply(t, nil); !gone.Failed() || d.State.IsNull() {
		t.Errorf("a destroy that did not get to the host says: %s", tftest.Show(gone.Diagnostics))
	}

	tftest.Must(t, os.WriteFile(at, content, 0o600))
	s.destroy(t, d, "dev")
}

// A write-only kubeconfig is missing in reads and destroys, and a warning says so before anything is created.
func TestContainer_warnsOfAWriteOnlyKubeconfig(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)

	content, err := os.ReadFile(s.Kubeconfig())
	tftest.Must(t, err)

	config := tftest.With(s.container("dev", tftest.NewBundle(t)), 1, "replicas")
	config["host"] = tftest.Config{"kubeconfig_wo": string(content), "namespace": s.namespace}

	d := s.drive(t, "talosop_control_plane")
	planned := d.Plan(t, config).Must(t)
	if diagnostics := tftest.Show(planned.Diagnostics); !strings.Contains(diagnostics, "[write_only_host_connection]") {
		t.Errorf("the plan says: %s", diagnostics)
	}

	d.ApplyPlanned(t.Context(), t, config, planned).Must(t)

	// The first refresh invalidates the plan.
	before := d.Refresh(t).Must(t).Value

	read := d.Refresh(t).Must(t)
	if diagnostics := tftest.Show(read.Diagnostics); !strings.Contains(diagnostics, "[host_not_read]") ||
		!d.State.Equal(before) {
		t.Errorf("the refresh says: %s", diagnostics)
	}

	// The provider has a connection.
	d.Server = tftest.ServeWith(t, s.ProviderData(),
		tftest.Config{"host": tftest.Config{"kubeconfig_path": s.Kubeconfig()}})

	if again := tftest.Show(d.Refresh(t).Must(t).Diagnostics); strings.Contains(again, "was not read") {
		t.Errorf("the refresh with a host of the provider says: %s", again)
	}

	if again := tftest.Show(d.Plan(t, tftest.With(config, 3, "replicas")).Must(t).Diagnostics); strings.Contains(again,
		"write-only") {
		t.Errorf("the plan with a host of the provider says: %s", again)
	}

	s.destroy(t, d, "dev")
}
