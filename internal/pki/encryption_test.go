package pki

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// aescbcKey is a key of 32 bytes that no cluster uses.
const aescbcKey = "YWVzY2JjLWtleS1vZi1hLXRlc3Qtd2l0aC0zMi1ieXQ="

// withEncryption is the test bundle with other keys for Secrets.
func withEncryption(t *testing.T, lines ...string) string {
	t.Helper()

	head, tail, _ := strings.Cut(string(testFile(t)), "    secretboxencryptionsecret: ")
	_, rest, _ := strings.Cut(tail, "\n")

	return head + strings.Join(lines, "") + rest
}

// bothKeys is a bundle of a cluster that is older than Talos 1.3, whose keys are in the order of the file.
func bothKeys(t *testing.T) string {
	t.Helper()

	secretbox := testBundle(t).Secrets().Secrets.SecretboxEncryptionSecret

	return withEncryption(t, "    aescbcencryptionsecret: "+aescbcKey+"\n",
		"    secretboxencryptionsecret: "+secretbox+"\n")
}

func parsed(t *testing.T, file string) *Bundle {
	t.Helper()

	bundle, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}

	return bundle
}

func TestParse_keepsBothEncryptionKeys(t *testing.T) {
	bundle := parsed(t, bothKeys(t))

	again, err := bundle.YAML()
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(bothKeys(t), string(again)); diff != "" {
		t.Errorf("not the same file (-want +got):\n%s", diff)
	}
}

// A cluster is known by the key that it encrypts with, so that the former one can be removed.
func TestBundle_isKnownWithoutItsFormerEncryptionKey(t *testing.T) {
	one, both := testBundle(t), parsed(t, bothKeys(t))
	former := parsed(t, withEncryption(t, "    aescbcencryptionsecret: "+aescbcKey+"\n"))

	if one.Identity() != both.Identity() || one.CurrentDigest() != both.CurrentDigest() {
		t.Error("the cluster is another one with its former key")
	}

	if one.Digest() == both.Digest() || one.CurrentDigest() != one.Digest() {
		t.Error("the digest does not tell bundles apart, or is another one for one key")
	}

	if former.Identity() == both.Identity() || former.CurrentDigest() != former.Digest() {
		t.Error("a bundle without the key that encrypts is taken for the cluster")
	}

	for _, test := range []struct {
		was, is *Bundle
		drops   bool
	}{{both, one, true}, {one, both, false}, {both, both, false}, {one, one, false}, {former, both, false}} {
		if got := test.is.DropsEncryptionKey(test.was); got != test.drops {
			t.Errorf("%v after %v drops a key: %t", test.is, test.was, got)
		}
	}
}

// documentsOf is the configuration of a control plane whose encryption is in a document.
func documentsOf(t *testing.T, providers string) []byte {
	t.Helper()

	main := configuration(t, "v1.13-controlplane.yaml")
	head, tail, _ := strings.Cut(main, "    secretboxEncryptionSecret: ")
	_, rest, _ := strings.Cut(tail, "\n")

	return []byte(head + rest + "\n---\napiVersion: v1alpha1\nkind: KubeEtcdEncryptionConfig\nconfig:\n  resources:\n" +
		"  - resources: [events]\n    providers: [{aesgcm: {keys: [{name: other, secret: other}]}}]\n" +
		"  - resources: [secrets]\n    providers: [" + providers + "]\n")
}

func provider(kind, name, secret string) string {
	return fmt.Sprintf("{%s: {keys: [{name: %s, secret: %q}]}}", kind, name, secret)
}

func TestFromMachineConfig_keepsEveryEncryptionKey(t *testing.T) {
	secretbox := testBundle(t).Secrets().Secrets.SecretboxEncryptionSecret
	main := configuration(t, "v1.13-controlplane.yaml")
	first, second := provider("secretbox", "key2", secretbox), provider("aescbc", "key1", aescbcKey)

	for name, test := range map[string]struct{ config, want string }{
		"both fields": {strings.Replace(main, "    secretboxEncryptionSecret:",
			"    aescbcEncryptionSecret: "+aescbcKey+"\n    secretboxEncryptionSecret:", 1), bothKeys(t)},
		"the former field": {strings.Replace(main, "    secretboxEncryptionSecret: "+secretbox,
			"    aescbcEncryptionSecret: "+aescbcKey, 1),
			withEncryption(t, "    aescbcencryptionsecret: "+aescbcKey+"\n")},
		"both providers": {string(documentsOf(t, first+", "+second+", {identity: {}}")), bothKeys(t)},
		"the former provider": {string(documentsOf(t, second)),
			withEncryption(t, "    aescbcencryptionsecret: "+aescbcKey+"\n")},
		"one provider": {string(documentsOf(t, first)), string(testFile(t))},
	} {
		bundle, err := FromMachineConfig([]byte(test.config))
		if err != nil {
			t.Errorf("%s: %v", name, err)

			continue
		}

		if got, err := bundle.YAML(); err != nil || string(got) != test.want {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, cmp.Diff(test.want, string(got)))
		}
	}
}

// What a bundle has no place for would be missing in the configurations that are made from it.
func TestFromMachineConfig_refusesToDropKeys(t *testing.T) {
	secretbox := testBundle(t).Secrets().Secrets.SecretboxEncryptionSecret
	first := provider("secretbox", "key2", secretbox)

	for name, test := range map[string]struct{ providers, want string }{
		// A control plane of contract v1.14 that Talos generated from a bundle with the key of aescbc.
		"a key of aescbc for secretbox": {provider("secretbox", "key1", aescbcKey), `key "key1" of secretbox`},
		"a second one for secretbox":    {first + ", " + provider("secretbox", "key1", aescbcKey), `key "key1" of secretbox`},
		"another name":                  {provider("aescbc", "key2", aescbcKey), `key "key2" of aescbc`},
		"two keys of one name":          {first + ", " + provider("secretbox", "key2", aescbcKey), `two with key "key2" of secretbox`},
		"another provider":              {first + ", {kms: {apiVersion: v2, name: hunter2}}", "provider kms"},
		"aesgcm":                        {first + ", " + provider("aesgcm", "key1", aescbcKey), `key "key1" of aesgcm`},
	} {
		_, err := FromMachineConfig(documentsOf(t, test.providers))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)

			continue
		}

		assertNoSecrets(t, err.Error())

		if strings.Contains(err.Error(), aescbcKey) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes a value: %v", name, err)
		}
	}
}

func TestFromMachineConfig_refusesBrokenDocuments(t *testing.T) {
	main := configuration(t, "v1.13-controlplane.yaml")

	for document, want := range map[string]string{
		"kind: KubeAPIServerCAConfig\nissuingCA: [hunter2]":                             "do not have the format",
		"kind: KubeAPIServerCAConfig\nissuingCA: {cert: hunter2, key: hunter2}":         "certs.k8s: crt is not a PEM",
		"kind: KubeAPIServerCAConfig":                                                   "certs.k8s: crt is missing",
		"kind: KubeAggregatorCAConfig\nissuingCA: {cert: [hunter2]}":                    "do not have the format",
		"kind: KubeAggregatorCAConfig\nissuingCA: {cert: hunter2, key: hunter2}":        "certs.k8saggregator: crt is not a PEM",
		"kind: KubeServiceAccountConfig\nissuer: {privateKey: {hunter2: x}}":            "do not have the format",
		"kind: KubeServiceAccountConfig\nissuer: {privateKey: hunter2}":                 "certs.k8sserviceaccount: key is not",
		"kind: DiscoveryIdentityConfig\nclusterID: [hunter2]":                           "do not have the format",
		"kind: KubeEtcdEncryptionConfig\nconfig: {resources: hunter2}":                  "do not have the format",
		"kind: KubeEtcdEncryptionConfig\nconfig: {resources: [{resources: [secrets]}]}": "encryptionsecret",
	} {
		config := main
		if strings.Contains(document, "KubeEtcdEncryptionConfig") {
			config = strings.Replace(main, "    secretboxEncryptionSecret:", "    # ", 1)
		}

		_, err := FromMachineConfig([]byte(config + "\n---\napiVersion: v1alpha1\n" + document + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %q", document, err, want)
		}
	}
}
