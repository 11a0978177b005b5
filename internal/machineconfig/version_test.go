package machineconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTalosVersion_goodAndBad(t *testing.T) {
	for _, good := range []string{"v1.10.0", "v1.13.6", "v1.12.0-alpha.1", "v1.11.5-3-gabcdef", "v1.14.0"} {
		version, err := ParseTalosVersion(good)
		if err != nil || version.String() != good {
			t.Errorf("%s gives %s, %v", good, version, err)
		}
	}

	if version, err := ParseTalosVersion("v1.13.6"); err != nil || version.Contract() != "v1.13" {
		t.Errorf("contract %s, %v", version.Contract(), err)
	}

	// A newer Talos is unknown, and gets what the newest known one understands.
	if version, err := ParseTalosVersion("v1.15.1"); err != nil || version.Contract() != "v1.14" || version.Known() {
		t.Errorf("contract %s, known %v, %v", version.Contract(), version.Known(), err)
	}

	shape := `; allowed: a version, such as ` + CurrentTalos + `; write all three numbers`

	if version, err := ParseTalosVersion("1.13.0"); err != nil || version.String() != "v1.13.0" {
		t.Errorf("without its v it is %s, %v", version, err)
	}

	for bad, want := range map[string]string{
		"v1.13":    `talos_version: found "v1.13"` + shape,
		"":         `talos_version: found ""` + shape,
		"latest":   `talos_version: found "latest"` + shape,
		"v01.13.0": `talos_version: found "v01.13.0"` + shape,
		"v1.9.5":   `talos_version: found "v1.9.5"; allowed: v1.10.0 to v1.14.x; use a supported Talos version`,
		"v2.11.0":  `talos_version: found "v2.11.0"; allowed: v1.10.0 to v1.14.x; use a supported Talos version, or a newer release of this provider`,
		"v0.12.0":  `talos_version: found "v0.12.0"; allowed: v1.10.0 to v1.14.x; use a supported Talos version`,
	} {
		_, err := ParseTalosVersion(bad)
		if diff := cmp.Diff([]string{want}, messages(err)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", bad, diff)
		}
	}
}

func TestKubernetesVersion_supportedByTalos(t *testing.T) {
	for _, test := range []struct{ talos, kubernetes, want string }{
		{"v1.10.0", "v1.28.0", ""},
		{"v1.10.0", "v1.33.9", ""},
		{"v1.10.0", "v1.34.0", `kubernetes_version: found "v1.34.0"; allowed: v1.28 to v1.33 with Talos v1.10.0; choose a Kubernetes version in that range, or a Talos version that supports this one; in a cluster that runs, upgrade Talos first, to a version that supports this Kubernetes`},
		{"v1.13.0", "v1.36.3", ""},
		{"v1.13.0", "v1.30.5", `kubernetes_version: found "v1.30.5"; allowed: v1.31 to v1.36 with Talos v1.13.0; choose a Kubernetes version in that range, or a Talos version that supports this one; in a cluster that runs, upgrade Kubernetes to at least v1.31 first, and Talos after it`},
		{"v1.15.0", "v1.45.0", ""},
		{"v1.13.0-rc.0", "v1.37.0", `kubernetes_version: found "v1.37.0"; allowed: v1.31 to v1.36 with Talos v1.13.0-rc.0; choose a Kubernetes version in that range, or a Talos version that supports this one; in a cluster that runs, upgrade Talos first, to a version that supports this Kubernetes`},
	} {
		talos, err := ParseTalosVersion(test.talos)
		if err != nil {
			t.Fatal(err)
		}

		kubernetes, err := ParseKubernetesVersion(test.kubernetes)
		if err != nil {
			t.Fatal(err)
		}

		got := ""
		if err := CheckKubernetesSupported(talos, kubernetes); err != nil {
			got = err.Error()
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Talos %s with Kubernetes %s (-want +got):\n%s", test.talos, test.kubernetes, diff)
		}
	}
}

func TestContract_mustNotBeNewerThanMachines(t *testing.T) {
	for _, test := range []struct {
		contract, talos string
		want            []string
	}{
		{"v1.10", "v1.13.0", nil},
		{"v1.13", "v1.13.0", nil},
		{"v1.13", "v1.12.6", []string{
			`talos_version_contract: found "v1.13"; allowed: at most v1.12, because machines run Talos v1.12.6; machines reject documents of a newer contract: lower the contract or raise talos_version`,
		}},
		{"1.13", "v1.13.0", []string{
			`talos_version_contract: found "1.13"; allowed: v1.10 to v1.14, without a patch level; write the Talos minor version the cluster was created with, such as v1.14`,
		}},
	} {
		talos, err := ParseTalosVersion(test.talos)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(test.want, messages(CheckContract(test.contract, talos))); diff != "" {
			t.Errorf("contract %s, Talos %s (-want +got):\n%s", test.contract, test.talos, diff)
		}
	}
}

// The kinds that Talos 1.13 documents. An unknown kind would pass unchecked.
func TestIsKnown_everyKindOfTalos(t *testing.T) {
	for _, kind := range []string{
		"HostnameConfig", "ResolverConfig", "TimeSyncConfig", "StaticHostConfig", "LinkConfig", "LinkAliasConfig",
		"BondConfig", "BridgeConfig",
		"VLANConfig", "VRFConfig", "DummyLinkConfig", "WireguardConfig", "DHCPv4Config", "DHCPv6Config", "Layer2VIPConfig",
		"HCloudVIPConfig",
		"EthernetConfig", "BlackholeRouteConfig", "RoutingRuleConfig", "TCPProbeConfig", "NetworkRuleConfig",
		"NetworkDefaultActionConfig",
		"KubeSpanConfig", "KubeSpanEndpointsConfig", "VolumeConfig", "UserVolumeConfig", "RawVolumeConfig",
		"ExistingVolumeConfig",
		"ExternalVolumeConfig", "SwapVolumeConfig", "ZswapConfig", "RegistryMirrorConfig", "RegistryAuthConfig",
		"RegistryTLSConfig",
		"ImageVerificationConfig", "TrustedRootsConfig", "EnvironmentConfig", "EventSinkConfig", "KmsgLogConfig", "OOMConfig",
		"WatchdogTimerConfig", "ExtensionServiceConfig", "PCIDriverRebindConfig", "SideroLinkConfig",
	} {
		if !(identity{apiVersion: "v1alpha1", kind: kind}).isKnown() {
			t.Errorf("%s is not known", kind)
		}
	}

	for _, unknown := range []identity{{"v1alpha1", "NoSuchConfig", ""}, {"v1beta1", "HostnameConfig", ""},
		{"v1alpha1", "a: [", ""}} {
		if unknown.isKnown() {
			t.Errorf("%+v is known", unknown)
		}
	}
}

func versionsOf(t *testing.T, texts ...string) []TalosVersion {
	t.Helper()

	var versions []TalosVersion

	for _, text := range texts {
		v, ok := ReadTalosVersion(text)
		if !ok {
			t.Fatalf("%q is no version", text)
		}

		versions = append(versions, v)
	}

	return versions
}
