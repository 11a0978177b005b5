package machineconfig

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fields"
)

func TestWithoutHardware_ofPatches(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		patch, want string
		bound       []BoundPart
	}{
		"portable, as written": {
			patch: "# why\nmachine:\n  nodeLabels: {a: b} # a label\n", want: "# why\nmachine:\n  nodeLabels: {a: b} # a label\n",
		},
		"fields": {
			patch: "machine:\n  install: {disk: /dev/sda}\n  network:\n    interfaces: [{interface: eth0, dhcp: true}]\n" +
				"  kubelet:\n    extraArgs: {v: \"2\"}\n    nodeIP: {validSubnets: [10.0.0.0/24]}\n",
			want: "machine:\n  kubelet:\n    extraArgs: {v: \"2\"}\n",
			bound: []BoundPart{{0, "machine.install", "disks and volumes"},
				{0, "machine.kubelet.nodeIP", "addresses and links"}, {0, "machine.network", "addresses and links"}},
		},
		"nothing left": {
			patch: "machine:\n  sysctls: {vm.swappiness: \"1\"}\n",
			bound: []BoundPart{{0, "machine.sysctls", "kernel and devices"}},
		},
		"documents": {
			patch: "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses: [{address: 10.0.0.5/24}]\n---\n" +
				"machine: {nodeLabels: {a: b}}\n---\napiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\n" +
				"provisioning: {diskSelector: {match: disk.transport == \"nvme\"}, minSize: 1GiB}\n",
			want: "machine: {nodeLabels: {a: b}}\n",
			bound: []BoundPart{{0, "LinkConfig eth0", "addresses and links"},
				{0, "UserVolumeConfig data", "disks and volumes"}},
		},
		"operations": {
			patch: "- {op: replace, path: /machine/install/disk, value: /dev/sda}\n" +
				"- {op: add, path: /machine/nodeLabels, value: {a: b}}\n",
			want:  "- {op: add, path: /machine/nodeLabels, value: {a: b}}\n",
			bound: []BoundPart{{0, "machine.install.disk", "disks and volumes"}},
		},
		"an anchor": {
			patch: "machine:\n  install: &same {disk: /dev/sda}\n  nodeLabels: {a: b}\n",
			want:  "machine:\n  nodeLabels: {a: b}\n",
			bound: []BoundPart{{0, "machine.install", "disks and volumes"}},
		},
		"empty": {},
	} {
		portable, bound, err := WithoutHardware([]string{test.patch})
		if err != nil {
			t.Errorf("%s: %v", name, err)

			continue
		}

		if diff := cmp.Diff(test.bound, bound); diff != "" {
			t.Errorf("%s: the bound parts differ (-want +got):\n%s", name, diff)
		}

		if got := strings.Join(portable, "\n"); !sameYAML(got, test.want) {
			t.Errorf("%s: the rest is\n%s\nwant\n%s", name, got, test.want)
		}
	}

	if _, _, err := WithoutHardware([]string{"machine: {}", "machine: ["}); err == nil ||
		!strings.Contains(err.Error(), "patches[1]") {
		t.Errorf("invalid YAML: %v", err)
	}
}

// portableKinds are documents that a copy of a cluster has, too. A kind of a new Talos belongs here or in boundKinds.
var portableKinds = []string{
	"CRIBaseRuntimeSpecConfig", "CRICustomizationConfig", "ContainerConfig", "EnvironmentConfig", "EtcFileConfig",
	"ExtensionServiceConfig", "ImageVerificationConfig", "KubeAPIServerCAConfig", "KubeAPIServerConfig",
	"KubeAdmissionControlConfig", "KubeAggregatorCAConfig", "KubeAuditPolicyConfig", "KubeAuthenticationConfig",
	"KubeAuthorizerConfig", "KubeClusterConfig", "KubeControllerManagerConfig", "KubeCoreDNSConfig",
	"KubeCredentialProviderConfig", "KubeEtcdEncryptionConfig", "KubeExternalManifestConfig", "KubeFlannelCNIConfig",
	"KubeInlineManifestConfig", "KubeNetworkConfig", "KubeNodeConfig", "KubePrismConfig", "KubeProxyConfig",
	"KubeSchedulerConfig", "KubeServiceAccountConfig", "KubeStaticPodConfig", "KubeTalosAPIAccessConfig", "KubeletConfig",
	"OOMConfig", "RegistryAuthConfig", "RegistryMirrorConfig", "RegistryTLSConfig", "SecurityProfileConfig",
	"TrustedRootsConfig", "v1alpha1",
}

// Every kind of document is either bound to machines or portable.
func TestWithoutHardware_knowsEveryKind(t *testing.T) {
	t.Parallel()

	for _, kind := range fields.Kinds() {
		if (boundKinds[kind] != "") == slices.Contains(portableKinds, kind) {
			t.Errorf("decide whether %s is bound to machines", kind)
		}
	}
}
