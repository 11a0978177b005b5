package sitetest

import (
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

// Living is a cluster with three control planes, and its handle.
type Living struct {
	*Site

	Handle map[string]any
	Bundle string
}

// NewLiving makes the cluster as a CLI would.
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

// KubernetesAt is the Kubernetes API at an endpoint of the cluster with these secrets. Whoever asks for it closes it.
func KubernetesAt(t *testing.T, endpoint string, secrets *pki.Bundle) *kubernetes.Client {
	t.Helper()

	api, err := providerdata.KubernetesOf(t.Context(), pki.Changing,
		machineset.Set{Settings: machineconfig.Cluster{Endpoint: endpoint}}, secrets, api.Options{})
	tftest.Must(t, err)

	return api
}
