package sitetest

import (
	"maps"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// Living is a running cluster with three control planes, and its handle.
type Living struct {
	*Site

	Handle map[string]any
	Bundle string
}

// NewLiving creates the cluster as a CLI would.
func NewLiving(t *testing.T, opts sim.Options) *Living {
	t.Helper()

	b := &Living{Site: NewWith(t, opts, 3, 0), Bundle: tftest.Bundle()}

	machines := tftest.Config{}
	for _, m := range b.ControlPlane {
		machines[m.Name()] = tftest.Config{"address": m.Address().String()}
	}

	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"], config["machines"] = "test", b.URL, "v1.36.2",
		machines
	config["deletion_protection"] = false

	plane := tftest.Drive(t, "talosop_control_plane", nil)
	if phase := tftest.Text(t, plane.Apply(t, config).Must(t).Value, "phase"); phase != "Ready" {
		t.Fatalf("the cluster is %s", phase)
	}

	b.Handle = tftest.Config{
		"name": "test", "endpoint": b.URL, "secrets": b.Bundle, "kubernetes_version": "v1.36.2",
		"talos_endpoints": []any{b.ControlPlane[0].Address().String(), b.ControlPlane[1].Address().String(),
			b.ControlPlane[2].Address().String()},
	}

	return b
}

// KubernetesAt is the Kubernetes API at an endpoint of the cluster with these secrets. The caller closes it.
func KubernetesAt(t *testing.T, endpoint string, secrets *pki.Bundle) *kubernetes.Client {
	t.Helper()

	api, err := providerdata.KubernetesOf(t.Context(), pki.Changing,
		machineset.Set{Settings: machineconfig.Cluster{Endpoint: endpoint}}, secrets, api.Options{})
	tftest.Must(t, err)

	return api
}

// Kubernetes is the Kubernetes API of the cluster with these secrets, until the test ends.
func (s *Site) Kubernetes(t *testing.T, bundle string) *kubernetes.Client {
	t.Helper()

	api := KubernetesAt(t, s.URL, tftest.ParsedBundle(t, bundle))
	t.Cleanup(api.Close)

	return api
}

// UnmarkNodes removes the marks of talosop from the nodes, as in a cluster of another tool.
func (s *Site) UnmarkNodes(t *testing.T, bundle string) {
	t.Helper()

	api := s.Kubernetes(t, bundle)
	for _, node := range api.Nodes.Observe(t.Context()).Nodes {
		tftest.Must(t, api.Own(t.Context(), node.Name, ""))
	}
}

// MadeElsewhere makes a control plane of one machine with a patch, as another tool does. It returns a configuration
// without secrets and patches, and that of a provider that has them.
func (s *Site) MadeElsewhere(t *testing.T, patch string) (
	planes tftest.Config, provider func(patches ...any) tftest.Config,
) {
	t.Helper()

	bundle := tftest.Bundle()
	planes = tftest.Config{
		"mode": "metal", "name": "test", "endpoint": s.URL, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "install": tftest.Config{"disk": "/dev/sda"},
		"machines": tftest.Config{"cp-1": tftest.Config{"address": s.ControlPlane[0].Address().String()}},
	}
	given := maps.Clone(planes)
	given["secrets"], given["config_patches"] = bundle, []any{patch}

	tftest.Drive(t, "talosop_control_plane", nil).Apply(t, given).Must(t)
	s.UnmarkNodes(t, bundle)

	return planes, func(patches ...any) tftest.Config {
		return tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": bundle, "config_patches": patches}}}
	}
}
