package machineconfig_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// isolatedMachine renders a machine of an isolated cluster.
func isolatedMachine(
	t *testing.T, contract string, role machineconfig.Role, patches ...string,
) (machineconfig.Config, error) {
	t.Helper()

	bundle, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	return machineconfig.Generate(
		machineconfig.Cluster{Name: "rehearsal", Endpoint: "https://10.0.1.10:6443", KubernetesVersion: "v1.35.2",
			Contract: contract, Isolated: true, Patches: patches},
		machineconfig.Machine{Role: role, Mode: machineconfig.Metal, Install: machineconfig.Install{Disk: "/dev/sda"}},
		bundle)
}

// An isolated cluster is rendered without discovery, in both forms of the configuration.
func TestIsolated_rendersNoDiscovery(t *testing.T) {
	t.Parallel()

	for _, contract := range []string{"v1.11", "v1.13", "v1.14"} {
		for _, role := range []machineconfig.Role{machineconfig.ControlPlane, machineconfig.Worker} {
			config, err := isolatedMachine(t, contract, role)
			if err != nil {
				t.Fatalf("%s of %s: %v", role, contract, err)
			}

			provider, err := configloader.NewFromBytes(config.Bytes)
			if err != nil {
				t.Fatal(err)
			}

			if n := len(provider.DiscoveryServiceConfigs()); n > 0 || provider.Cluster().Discovery().Enabled() {
				t.Errorf("%s of %s uses %d discovery services, the registry in Kubernetes: %t", role, contract, n,
					provider.Cluster().Discovery().Enabled())
			}
		}
	}
}

// Patches that connect an isolated cluster to another one are refused, where they are.
func TestIsolated_refusesPatchesThatConnect(t *testing.T) {
	t.Parallel()

	harmless := `{"machine": {"sysctls": {"a": "b"}}}`

	for name, test := range map[string]struct{ contract, patch, says string }{
		"discovery": {"v1.13", `{"cluster": {"discovery": {"enabled": true}}}`, "the discovery service is on"},
		"the registry in Kubernetes": {"v1.13", `{"cluster": {"discovery": {"enabled": true, "registries": ` +
			`{"kubernetes": {"disabled": false}, "service": {"disabled": true}}}}}`, "cluster.discovery is enabled"},
		"the document": {"v1.14", "apiVersion: v1alpha1\nkind: DiscoveryServiceConfig\nname: default\n" +
			"endpoint: https://discovery.talos.dev/\n", "the discovery service is on"},
		"another endpoint": {"v1.13", `{"cluster": {"controlPlane": {"endpoint": "https://10.0.0.10:6443"}}}`,
			"the endpoint of the cluster is https://10.0.0.10:6443, not https://10.0.1.10:6443"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := isolatedMachine(t, test.contract, machineconfig.ControlPlane, harmless, test.patch)

			var mistake *machineconfig.FieldError
			if !errors.As(err, &mistake) || mistake.Field != "patches[1]" || !strings.Contains(mistake.Found, test.says) {
				t.Errorf("error %v, want one about patches[1] that says %q", err, test.says)
			}

			if _, err := isolatedMachine(t, test.contract, machineconfig.ControlPlane, harmless); err != nil {
				t.Errorf("without the patch: %v", err)
			}
		})
	}
}

// The argument that turns discovery on contradicts isolation.
func TestIsolated_refusesTheArgumentDiscovery(t *testing.T) {
	t.Parallel()

	on := true

	err := machineconfig.ValidateCluster(machineconfig.Cluster{Isolated: true, Discovery: &on})

	var mistake *machineconfig.FieldError
	if !errors.As(err, &mistake) || mistake.Field != "discovery" {
		t.Errorf("error %v, want one about discovery", err)
	}
}

// A container of an isolated cluster finds its endpoint without DNS; one whose endpoint is an address needs nothing.
func TestIsolated_containersFindTheEndpoint(t *testing.T) {
	t.Parallel()

	bundle, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	const entry = "10.96.7.7"

	for _, contract := range []string{"v1.11", "v1.13", "v1.14"} {
		for endpoint, want := range map[string]bool{"https://dev.talos.svc.cluster.local:6443": true,
			"https://10.96.7.8:6443": false} {
			config, err := machineconfig.Generate(
				machineconfig.Cluster{Name: "dev", Endpoint: endpoint, KubernetesVersion: "v1.35.2", Contract: contract,
					Container: true, Isolated: true},
				machineconfig.Machine{Role: machineconfig.Worker, Mode: machineconfig.Container,
					EndpointAddress: netip.MustParseAddr(entry)}, bundle)
			if err != nil {
				t.Fatalf("%s: %v", contract, err)
			}

			provider, err := configloader.NewFromBytes(config.Bytes)
			if err != nil {
				t.Fatal(err)
			}

			found := false
			for _, host := range provider.NetworkStaticHostConfig() {
				found = found || host.IP() == entry && slices.Equal(host.Aliases(), []string{"dev.talos.svc.cluster.local"})
			}

			if found != want {
				t.Errorf("%s at %s: an entry for the endpoint is there: %t", contract, endpoint, found)
			}
		}
	}
}
