package machineconfig

import (
	"errors"
	"strings"
	"testing"
)

// What a machine of an older Talos would refuse as unknown is refused for it, by the function and by the plan alike.
func TestValidatePatchFor_versions(t *testing.T) {
	const document = "apiVersion: v1alpha1\nkind: "

	for _, test := range []struct {
		patch, knows, lacks, found string
	}{
		{document + "ResolverConfig\nhostDNS: {enabled: true}", "v1.14.0", "v1.13.9", "hostDNS of the document ResolverConfig"},
		{document + "ResolverConfig\nnameservers: [{address: 10.0.0.1}]", "v1.12.0", "v1.11.6", "the document ResolverConfig"},
		{document + "ResolverConfig\nnameservers: [{address: 10.0.0.1}, {address: 10.0.0.2, protocol: DoT, tlsServerName: a.test}]",
			"v1.14.0", "v1.13.9", "nameservers.protocol"},
		{document + "VolumeConfig\nname: EPHEMERAL\nprovisioning: {maxSize: 9GiB}\nmount: {secure: true}", "v1.13.0", "v1.12.4",
			"mount of the document VolumeConfig/EPHEMERAL"},
		{document + "VolumeConfig\nname: EPHEMERAL\ntrim: {enabled: true}", "v1.14.0", "v1.13.9", "trim of"},
		{document + "UserVolumeConfig\nname: a\nvolumeType: directory", "v1.12.0", "v1.11.6", "volumeType of"},
		{document + "RawVolumeConfig\nname: a\nencryption: {provider: luks2, allowDiscards: true, keys: [{slot: 0, nodeID: {}}]}",
			"v1.14.0", "v1.13.9", "encryption.allowDiscards of"},
		{document + "DHCPv4Config\nname: a\nignoreRoutes: true", "v1.14.0", "v1.13.9", "ignoreRoutes of"},
		{document + "TimeSyncConfig\nntp: {servers: [a.test], useNTS: true}", "v1.14.0", "v1.13.9", "ntp.useNTS of"},
		{"cluster: {network: {cni: {name: flannel, flannel: {kubeNetworkPoliciesEnabled: true}}}}", "v1.13.0", "v1.12.4",
			"cluster.network.cni.flannel.kubeNetworkPoliciesEnabled of the document v1alpha1"},
	} {
		for version, found := range map[string]string{"": "", test.knows: "", test.lacks: test.found} {
			isMistake(t, ValidatePatchFor(test.patch, versionOf(t, version)), test.patch+" for "+version, found)
		}

		c, m := testCluster("v1.11"), testMachine(Worker)
		c.Patches, m.TalosVersion = []string{"machine: {}", test.patch}, test.lacks

		_, err := Generate(c, m, testBundle(t))
		if mistakes := FieldErrors(err); len(mistakes) != 1 || mistakes[0].Field != "patches[1]" ||
			!strings.Contains(mistakes[0].Found, test.found) {
			t.Errorf("%s is generated for %s: %v", test.patch, test.lacks, err)
		}
	}
}

func versionOf(t *testing.T, text string) *TalosVersion {
	t.Helper()

	if text == "" {
		return nil
	}

	version, err := ParseTalosVersion(text)
	if err != nil {
		t.Fatal(err)
	}

	return &version
}

// isMistake checks that there is one error with a text, or none where the text is empty.
func isMistake(t *testing.T, err error, of, found string) {
	t.Helper()

	mistakes := FieldErrors(err)

	if found == "" && err != nil || found != "" && (len(mistakes) != 1 || !strings.Contains(mistakes[0].Error(), found)) {
		t.Errorf("%s: %v, want %q", of, err, found)
	}
}

// Kinds that no supported Talos has are refused with a suggestion, and accepted for a newer Talos.
func TestValidatePatchFor_unknownKinds(t *testing.T) {
	for patch, want := range map[string]string{
		"apiVersion: v1alpha1\nkind: HostnamConfig\nhostname: a":    "did you mean HostnameConfig?",
		"apiVersion: v1alpha1\nkind: Volumeconfig\nname: EPHEMERAL": "did you mean VolumeConfig?",
		"apiVersion: v1beta1\nkind: HostnameConfig\nhostname: a":    "write apiVersion: v1alpha1",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {}":       "Kubernetes objects go into an inline manifest or an addon",
		"apiVersion: v1\nkind: Secret\nmetadata: {}":                "Kubernetes objects go into an inline manifest or an addon",
		"apiVersion: v1alpha1\nkind: QuantumConfig\na: 1":           "allow_untested = true",
	} {
		for _, version := range []string{"", "v1.13.0", "v1.14.0"} {
			isMistake(t, ValidatePatchFor(patch, versionOf(t, version)), patch+" for "+version, want)
		}

		isMistake(t, ValidatePatchFor(patch, versionOf(t, "v1.15.0")), patch, "")

		c, m := testCluster("v1.13"), testMachine(Worker)
		c.Patches, m.TalosVersion = []string{patch}, "v1.13.0"
		_, err := Generate(c, m, testBundle(t))
		isMistake(t, err, patch, want)

		m.TalosVersion = "v1.15.0"
		_, err = Generate(c, m, testBundle(t))
		isMistake(t, err, patch, "")
	}
}

// Unknown fields are found in documents of every kind, with what may have been meant.
func TestValidatePatch_suggestsFields(t *testing.T) {
	for patch, want := range map[string]string{
		"machine: {instal: {disk: /dev/sda}}":                                             "did you mean machine.install?",
		"machine: {network: {interfaces: [{interfac: a}]}}":                               "did you mean machine.network.interfaces[0].interface?",
		"apiVersion: v1alpha1\nkind: HostnameConfig\nhostnam: a":                          "did you mean hostname?",
		"apiVersion: v1alpha1\nkind: VethConfig\nname: a\nupp: true\npeer: {name: b}":     "did you mean up?",
		"apiVersion: v1alpha1\nkind: VethConfig\nname: a\nquantum: true":                  "check spelling and indentation",
		"machine: {quantum: {}}":                                                          "check spelling and indentation",
		"apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: a\nendpoints: [{ur: b}]": "did you mean endpoints[0].url?",
	} {
		err := ValidatePatch(patch, "v1.14")
		if !errors.Is(err, ErrUnknownField) {
			t.Errorf("%s: %v", patch, err)
		}

		isMistake(t, err, patch, want)
	}
}
