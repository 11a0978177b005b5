package machineconfig

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// aescbcKey is a key of 32 bytes that no cluster uses.
const aescbcKey = "YWVzY2JjLWtleS1vZi1hLXRlc3Qtd2l0aC0zMi1ieXQ="

// bundleOf is the test bundle with the given keys for Secrets of Kubernetes.
func bundleOf(t *testing.T, secretbox, aescbc string) *pki.Bundle {
	t.Helper()

	encoded, err := testBundle(t).YAML()
	if err != nil {
		t.Fatal(err)
	}

	var lines string
	if aescbc != "" {
		lines += "    aescbcencryptionsecret: " + aescbc + "\n"
	}

	if secretbox != "" {
		lines += "    secretboxencryptionsecret: " + secretbox + "\n"
	}

	head, tail, _ := strings.Cut(string(encoded), "    secretboxencryptionsecret: ")
	_, rest, _ := strings.Cut(tail, "\n")

	bundle, err := pki.Parse([]byte(head + lines + rest))
	if err != nil {
		t.Fatal(err)
	}

	return bundle
}

// providersOf are the providers, names and keys in the order in which Talos gives them to kube-apiserver (Talos 1.14,
// k8s/internal/k8stemplates/apiserver.go, APIServerEncryptionConfig). Its last one, identity, has no key.
func providersOf(t *testing.T, config []byte) (providers [][3]string) {
	t.Helper()

	provider, err := configloader.NewFromBytes(config)
	if err != nil {
		t.Fatal(err)
	}

	own := provider.K8sEtcdEncryptionConfig()
	if own == nil {
		for _, field := range [][3]string{{"secretbox", "key2", provider.Cluster().SecretboxEncryptionSecret()},
			{"aescbc", "key1", provider.Cluster().AESCBCEncryptionSecret()}} {
			if field[2] != "" {
				providers = append(providers, field)
			}
		}

		return providers
	}

	for _, resource := range own.EtcdEncryptionConfig()["resources"].([]any) {
		for _, one := range resource.(map[string]any)["providers"].([]any) {
			for kind, settings := range one.(map[string]any) {
				for _, key := range settings.(map[string]any)["keys"].([]any) {
					named := key.(map[string]any)
					providers = append(providers, [3]string{kind, named["name"].(string), named["secret"].(string)})
				}
			}
		}
	}

	return providers
}

// Every contract writes every key that encrypts Secrets, as Talos does for the same keys in the main document.
func TestEncryption_hasEveryKeyOfTheBundle(t *testing.T) {
	secretbox := testBundle(t).Secrets().Secrets.SecretboxEncryptionSecret
	first, second := [3]string{"secretbox", "key2", secretbox}, [3]string{"aescbc", "key1", aescbcKey}

	for _, contract := range contracts {
		for name, test := range map[string]struct {
			bundle *pki.Bundle
			want   [][3]string
		}{
			"secretbox": {bundleOf(t, secretbox, ""), [][3]string{first}},
			"aescbc":    {bundleOf(t, "", aescbcKey), [][3]string{second}},
			"both":      {bundleOf(t, secretbox, aescbcKey), [][3]string{first, second}},
		} {
			config, err := Generate(testCluster(contract), testMachine(ControlPlane), test.bundle)
			if err != nil {
				t.Errorf("%s, %s: %v", contract, name, err)

				continue
			}

			if diff := cmp.Diff(test.want, providersOf(t, config.Bytes)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", contract, name, diff)
			}

			imported, err := pki.FromMachineConfig(config.Bytes)
			if err != nil || imported.Digest() != test.bundle.Digest() {
				t.Errorf("%s, %s: another bundle is read back: %v", contract, name, err)
			}

			worker, err := Generate(testCluster(contract), testMachine(Worker), test.bundle)
			if err != nil || bytes.Contains(worker.Bytes, []byte(aescbcKey)) {
				t.Errorf("%s, %s: the key is in the configuration of a worker: %v", contract, name, err)
			}

			settings, _, err := SettingsOf(config.Bytes, test.bundle)
			if err != nil || settings.Contract != max(contract, "v1.11") { // which differs from v1.10 in nothing here
				t.Errorf("%s, %s: settings of contract %s are read back: %v", contract, name, settings.Contract, err)
			}
		}
	}
}

// Talos accepts any encryption configuration, and kube-apiserver does not start with one that it cannot read.
func TestEncryption_isReadable(t *testing.T) {
	for name, test := range map[string]struct {
		config string
		valid  bool
	}{
		"kms":                 {"{resources: [{resources: [secrets], providers: [{kms: {name: a, endpoint: \"unix:///a\"}}, {identity: {}}]}]}", true},
		"resources as a text": {"{resources: hunter2}", false},
		"providers as a map":  {"{resources: [{resources: [secrets], providers: {identity: {}}}]}", false},
		"a key as a text":     {"{resources: [{resources: [secrets], providers: [{secretbox: hunter2}]}]}", false},
	} {
		m := testMachine(ControlPlane)
		m.PoolPatches = []string{"machine: {}", "apiVersion: v1alpha1\nkind: KubeEtcdEncryptionConfig\nconfig: " + test.config + "\n"}

		_, err := Generate(testCluster(documentContract), m, testBundle(t))

		mistakes := FieldErrors(err)
		if test.valid && err != nil || !test.valid && (len(mistakes) != 1 || mistakes[0].Field != "pool.patches[1]" ||
			strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Differences name where keys are and show none.
func TestEncryption_isComparedWithoutKeys(t *testing.T) {
	secretbox := testBundle(t).Secrets().Secrets.SecretboxEncryptionSecret

	for contract, where := range map[string]string{
		"v1.13": "cluster.aescbcEncryptionSecret", documentContract: "KubeEtcdEncryptionConfig",
	} {
		both, errA := Generate(testCluster(contract), testMachine(ControlPlane), bundleOf(t, secretbox, aescbcKey))
		one, errB := Generate(testCluster(contract), testMachine(ControlPlane), bundleOf(t, secretbox, ""))

		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}

		changes, err := Diff(both.Bytes, one.Bytes)
		if err != nil || len(changes) == 0 {
			t.Errorf("%s: %v, %v", contract, changes, err)
		}

		for _, change := range changes {
			if text := change.String(); !strings.Contains(text, where) || strings.Contains(text, aescbcKey) {
				t.Errorf("%s: %s", contract, text)
			}
		}
	}
}
