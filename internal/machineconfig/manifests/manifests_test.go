package manifests_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/manifests"
)

// sources are those of a control plane with a patch.
func sources(t *testing.T, contract, patch string) []manifests.Source {
	t.Helper()

	generator, err := machineconfig.NewChecker(machineconfig.Cluster{
		Name: "test", Endpoint: "https://10.0.0.1:6443", KubernetesVersion: "v1.36.3", Contract: contract,
	})
	if err != nil {
		t.Fatal(err)
	}

	machine := machineconfig.Machine{
		Role: machineconfig.ControlPlane, TalosVersion: contract + ".0", Install: machineconfig.Install{Disk: "/dev/sda"},
	}
	if patch != "" {
		machine.Patches = []string{patch}
	}

	config, err := generator.Machine(machine)
	if err != nil {
		t.Fatal(err)
	}

	found, err := manifests.Of(config.Bytes)
	if err != nil {
		t.Fatal(err)
	}

	return found
}

const inline = `cluster:
  inlineManifests:
    - name: metrics
      contents: |
        apiVersion: v1
        kind: Namespace
        metadata: {name: metrics}
        ---
        apiVersion: v1
        kind: Secret
        metadata: {name: token, namespace: metrics}
        stringData: {token: %q}
`

// Each setting from which Talos makes manifests is reported with the name of its purpose, and others are not.
func TestChanges_namesWhatManifestsAreMadeOf(t *testing.T) {
	t.Parallel()

	document := func(kind, body string) string {
		return "apiVersion: v1alpha1\nkind: " + kind + "\n" + body
	}

	for name, c := range map[string]struct {
		contract, before, after string
		want                    []string
	}{
		"nothing":         {contract: "v1.13", before: "", after: ""},
		"another sysctl":  {contract: "v1.13", after: "machine: {sysctls: {vm.swappiness: '1'}}"},
		"another image":   {contract: "v1.13", after: "cluster: {proxy: {image: 'registry.k8s.io/kube-proxy:v1.36.4'}}"},
		"kube-proxy":      {contract: "v1.13", after: "cluster: {proxy: {mode: ipvs}}", want: []string{"kube-proxy"}},
		"kube-proxy goes": {contract: "v1.13", after: "cluster: {proxy: {disabled: true}}", want: []string{"without kube-proxy"}},
		"CoreDNS":         {contract: "v1.13", after: "cluster: {coreDNS: {image: 'a/coredns:v1'}}", want: []string{"CoreDNS"}},
		"Flannel goes": {contract: "v1.13", after: "cluster: {network: {cni: {name: none}}}",
			want: []string{"without Flannel"}},
		"an extra manifest": {contract: "v1.13",
			after: "cluster: {extraManifests: ['https://user:hidden@example.com/a.yaml?token=hidden']}",
			want:  []string{"extra manifest https://example.com/a.yaml"}},
		"one of two URLs that read alike": {contract: "v1.13",
			before: "cluster: {extraManifests: ['https://example.com/a.yaml?v=1', 'https://example.com/a.yaml?v=2']}",
			after:  "cluster: {extraManifests: ['https://example.com/a.yaml?v=1']}",
			want:   []string{"without extra manifest https://example.com/a.yaml"}},
		"an inline manifest": {contract: "v1.13", after: fmt.Sprintf(inline, "1"),
			want: []string{"inline manifest metrics (Namespace metrics, Secret metrics/token)"}},
		"another inline manifest": {contract: "v1.13", before: fmt.Sprintf(inline, "1"), after: fmt.Sprintf(inline, "2"),
			want: []string{"inline manifest metrics (Namespace metrics, Secret metrics/token)"}},
		"no inline manifest": {contract: "v1.13", before: fmt.Sprintf(inline, "1"),
			want: []string{"without inline manifest metrics (Namespace metrics, Secret metrics/token)"}},
		"kube-proxy in a document": {contract: "v1.14", after: document("KubeProxyConfig", "config: {mode: ipvs}\n"),
			want: []string{"kube-proxy"}},
		"CoreDNS in a document": {contract: "v1.14", after: document("KubeCoreDNSConfig", "enabled: false\n"),
			want: []string{"without CoreDNS"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := manifests.Changes(sources(t, c.contract, c.before), sources(t, c.contract, c.after))
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
