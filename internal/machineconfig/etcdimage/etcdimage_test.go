package etcdimage_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/etcdimage"
)

func TestMinor_ofTheImageInAConfiguration(t *testing.T) {
	t.Parallel()

	for image, want := range map[string]string{
		"registry.k8s.io/etcd:v3.6.12": "3.6", "gcr.io/etcd-development/etcd:v3.5.21": "3.5", "registry:5000/etcd:3.7.1-0": "3.7",
		"registry.k8s.io/etcd:v3.6.12@sha256:00": "3.6", "registry:5000/etcd": "", "registry.k8s.io/etcd:latest": "",
	} {
		config := "version: v1alpha1\ncluster:\n    etcd:\n        image: " + image + "\n---\nkind: KubeletConfig\n"
		if got := etcdimage.Minor([]byte(config)); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}

	for _, config := range []string{"", "cluster: {etcd: {ca: {}}}\n", "not: [yaml", "kind: KubeletConfig\n"} {
		if got := etcdimage.Minor([]byte(config)); got != "" {
			t.Errorf("%q: %q, want none", config, got)
		}
	}
}
