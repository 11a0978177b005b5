package provider

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
)

// What another resource of the same apply may bring is no error of the plan, and one of the apply when it does not
// come.
func TestContainerPlan_waitsForOtherResources(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	base := func() configuration { return s.cluster("dev", newBundle(t), 1, 0) }

	_, err := s.API().CoreV1().ResourceQuotas(s.namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourceServices: clusterhandle.QuantityOr("0", "0")}},
	}, metav1.CreateOptions{})
	must(t, err)

	for name, test := range map[string]struct {
		config configuration
		words  string
	}{
		"a namespace": {with(base(), s.namespace+"-later", "host", "namespace"),
			"has no namespace " + s.namespace + "-later"},
		"a storage class": {with(base(), configuration{"storage": configuration{"class": "later"}}, "host", "pod"),
			"no storage class later"},
		"a priority class": {with(base(), configuration{"priority_class": "later"}, "host", "pod"),
			"no priority class later"},
		"a quota": {base(), "limited: services=0"},
	} {
		d := s.drive(t, "talosop_cluster")
		planned := d.plan(t, test.config)

		if said := show(planned.diagnostics); planned.failed() || !strings.Contains(said, test.words) ||
			!strings.Contains(said, "depends_on") {
			t.Errorf("%s, in a plan: %s", name, said)
		}

		if planned.failed() {
			continue
		}

		done := d.applyPlanned(t.Context(), t, test.config, planned)
		if said := show(done.diagnostics); !done.failed() || !strings.Contains(said, test.words) || !d.state.IsNull() {
			t.Errorf("%s, in an apply: %s", name, said)
		}
	}

	s.expectNothing(t, "dev")
}

// A namespace that is there and keeps privileged pods out is an error of the plan.
func TestContainerPlan_refusesCertainFailures(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	closed := s.namespace + "-closed"

	_, err := s.API().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: closed,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}},
	}, metav1.CreateOptions{})
	must(t, err)

	t.Cleanup(func() {
		must(t, s.API().CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), closed, metav1.DeleteOptions{}))
	})

	d := s.drive(t, "talosop_cluster")
	if planned := d.plan(t, with(s.cluster("dev", newBundle(t), 1, 0), closed, "host", "namespace")); !planned.failed() {
		t.Errorf("the plan says: %s", show(planned.diagnostics))
	}
}

// The objects of a resource that is to be replaced are still there when its successor is planned, with secrets of its
// own.
func TestContainerPlan_ofReplacements(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	config := with(s.container("dev", newBundle(t)), 1, "replicas")
	renewed := with(maps.Clone(config), newBundle(t), "secrets")
	d := s.drive(t, "talosop_control_plane")
	d.ready(t, config)

	successor := s.drive(t, "talosop_control_plane")

	planned := successor.plan(t, renewed)
	if said := show(planned.diagnostics); planned.failed() || !strings.Contains(said, "is not this cluster's") {
		t.Fatalf("the plan says: %s", said)
	}

	if done := successor.applyPlanned(t.Context(), t, renewed, planned); !done.failed() || !successor.state.IsNull() {
		t.Errorf("an apply took what another resource has: %s", show(done.diagnostics))
	}

	d.apply(t, nil).must(t)
	planned = successor.plan(t, renewed).must(t)
	successor.applyPlanned(t.Context(), t, renewed, planned).must(t)
	s.destroy(t, successor, "dev")
}

// A kubeconfig that is away keeps nobody from refreshing: what was seen of the machines stays, with a warning.
func TestContainer_refreshWithoutAKubeconfig(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_control_plane")

	content, err := os.ReadFile(s.Kubeconfig())
	must(t, err)

	at := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(at, content, 0o600))

	config := with(with(s.container("dev", newBundle(t)), 1, "replicas"), at, "host", "kubeconfig_path")

	done := d.ready(t, config)
	if said := show(done.diagnostics); strings.Contains(said, "write-only") {
		t.Errorf("the create says: %s", said)
	}

	// What was planned is over with the first refresh.
	before := d.refresh(t).must(t).Value

	must(t, os.Remove(at))

	read := d.refresh(t).must(t)
	if said := show(read.diagnostics); !strings.Contains(said, "The host cluster was not read") {
		t.Errorf("the refresh says: %s", said)
	}

	if !d.state.Equal(before) {
		t.Error("the refresh changed the state")
	}

	if gone := d.apply(t, nil); !gone.failed() || d.state.IsNull() {
		t.Errorf("a destroy that did not get to the host says: %s", show(gone.diagnostics))
	}

	must(t, os.WriteFile(at, content, 0o600))
	s.destroy(t, d, "dev")
}

// A write-only kubeconfig is not there for reads and destroys, which is said before anything is made.
func TestContainer_warnsOfAWriteOnlyKubeconfig(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)

	content, err := os.ReadFile(s.Kubeconfig())
	must(t, err)

	config := with(s.container("dev", newBundle(t)), 1, "replicas")
	config["host"] = configuration{"kubeconfig_wo": string(content), "namespace": s.namespace}

	d := s.drive(t, "talosop_control_plane")
	planned := d.plan(t, config).must(t)
	if said := show(planned.diagnostics); !strings.Contains(said, "write-only") {
		t.Errorf("the plan says: %s", said)
	}

	d.applyPlanned(t.Context(), t, config, planned).must(t)

	// What was planned is over with the first refresh.
	before := d.refresh(t).must(t).Value

	read := d.refresh(t).must(t)
	if said := show(read.diagnostics); !strings.Contains(said, "The host cluster was not read") || !d.state.Equal(before) {
		t.Errorf("the refresh says: %s", said)
	}

	// The provider gets there.
	d.Server = serve(t, s.ProviderData(), configuration{"host": configuration{"kubeconfig_path": s.Kubeconfig()}})

	if again := show(d.refresh(t).must(t).diagnostics); strings.Contains(again, "was not read") {
		t.Errorf("the refresh with a host of the provider says: %s", again)
	}

	if again := show(d.plan(t, with(config, 3, "replicas")).must(t).diagnostics); strings.Contains(again, "write-only") {
		t.Errorf("the plan with a host of the provider says: %s", again)
	}

	s.destroy(t, d, "dev")
}
