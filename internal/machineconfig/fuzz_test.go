package machineconfig

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// For every configuration that a machine reports, and every patch of a user: no panic, digests that agree with
// differences, and no secret in what is shown. `go test -fuzz=FuzzDiff ./internal/machineconfig` looks for more;
// findings stay in testdata/fuzz.

// largestFuzzed in bytes keeps one input from taking long.
const largestFuzzed = 16 << 10

// seedConfigs are small ones of the forms that there are.
func seedConfigs(f *testing.F) [][]byte {
	f.Helper()

	seeds := [][]byte{
		[]byte("version: v1alpha1\nmachine:\n  type: worker\n  token: very-secret-token\n  kubelet: {image: \"k:v1\"}\n" +
			"  env: {A.B: very-secret-token, https_proxy: \"http://u:very-secret-token@proxy\"}\n" +
			"  sysctls: {a.b: \"1\"}\n  files: [{content: very-secret-token, path: /var/x, op: create}]\n" +
			"cluster:\n  controlPlane: {endpoint: \"https://10.0.0.1:6443\"}\n  secret: very-secret-token\n"),
		[]byte("apiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: very-secret-token\n---\n" +
			"apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: r.test\nusername: u\npassword: very-secret-token\n"),
		[]byte("apiVersion: v9\nkind: Future\nlist: [1, 0x1F, ~, !!binary aGk=, 2001-01-01, .inf, {a: &a {b: 1}, c: *a}]\n"),
		[]byte("machine:\n  type: controlplane\n  kubelet: {<<: {image: x}}\n"),
		[]byte("cluster: {apiServer: null}\nmachine: {type: init, 8080: true}\n---\n...\n---\n"),
	}

	for _, name := range []string{"v1.11-worker.yaml", "v1.13-controlplane-everything.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", "golden", name))
		if err != nil {
			f.Fatal(err)
		}

		// What is shortened there is no base64.
		seeds = append(seeds, []byte(strings.ReplaceAll(string(data), "shortened", "c2hvcnRlbmVk")))
	}

	return seeds
}

// secretsOf are the texts that Talos hides of configurations that it can load, those aside that stand elsewhere in one
// of them too.
func secretsOf(configs ...[]byte) []string {
	var secrets, rest []string

	for _, cfg := range configs {
		provider, err := configloader.NewFromBytes(cfg)
		if err != nil {
			rest = append(rest, string(cfg))
			continue
		}

		scrub, err := newScrubber(provider, true)
		if err != nil {
			continue
		}

		secrets = append(secrets, scrub.secrets...)

		open, err := provider.RedactSecrets(redactedValue).EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
		if err == nil {
			rest = append(rest, string(open))
		}
	}

	return slices.DeleteFunc(secrets, func(secret string) bool {
		return len(secret) < 8 || strings.Contains(strings.Join(rest, "\n"), secret)
	})
}

// shows checks that a text has none of the secrets in it.
func shows(t *testing.T, what, text string, secrets []string) {
	t.Helper()

	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows %q: %s", what, secret, text)
		}
	}
}

// FuzzReencoded gives what a machine reads, and then shows as it understood it.
func FuzzReencoded(f *testing.F) {
	for _, seed := range seedConfigs(f) {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, cfg []byte) {
		if len(cfg) > largestFuzzed {
			return
		}

		digest, err := Digest(cfg)
		if err != nil {
			shows(t, "the error", err.Error(), secretsOf(cfg))
			return
		}

		reencoded(t, cfg, digest)

		if _, err := WithImages(cfg, kubenames.Images{"kubelet": "x:v1"}); err != nil {
			shows(t, "the error", err.Error(), secretsOf(cfg))
		}
	})
}

// reencoded checks that the machinery library does not change a configuration when it encodes it again, as a
// machine does before it shows it.
func reencoded(t *testing.T, cfg []byte, digest string) {
	t.Helper()

	provider, err := configloader.NewFromBytes(cfg)
	if err != nil {
		return
	}

	written, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return
	}

	again, err := Digest(written)
	if errors.Is(err, ErrNoDocuments) {
		return
	}

	if err != nil || again != digest {
		changes, _ := Diff(cfg, written)
		t.Errorf("written again by Talos it has the digest %s, %v, before %s: %v\n%s", again, err, digest, changes, written)
	}
}

func FuzzDiff(f *testing.F) {
	seeds := seedConfigs(f)
	for i, seed := range seeds {
		f.Add(seed, seeds[(i+1)%len(seeds)])
		f.Add(seed, []byte(strings.ReplaceAll(string(seed), "very-secret-token", "another-secret-token")))
	}

	f.Fuzz(func(t *testing.T, before, after []byte) {
		if len(before)+len(after) > largestFuzzed {
			return
		}

		secrets := secretsOf(before, after)

		changes, err := Diff(before, after)
		if err != nil {
			shows(t, "the error", err.Error(), secrets)
			return
		}

		var places []fieldpath.Place

		for _, change := range changes {
			shows(t, "a change", change.String()+"\n"+change.Brief(), secrets)

			place, err := fieldpath.ParsePlace(change.Place.String())
			if err != nil || !place.Equal(change.Place) {
				t.Errorf("the place %s is read back as %v, %v", change.Place, place, err)
			}

			places = append(places, change.Place)
		}

		Grouped(changes)

		put, err := PutBack(after, places)
		if err != nil || len(put) != len(changes) {
			t.Errorf("%d places change by %d changes, %v", len(places), len(put), err)
		}

		for _, change := range put {
			shows(t, "what is put back", change.String(), secrets)
		}

		asDigests(t, before, after, changes)
	})
}

// asDigests checks that two configurations differ exactly when their digests do.
func asDigests(t *testing.T, before, after []byte, changes []Change) {
	t.Helper()

	one, err := Digest(before)
	if err != nil {
		return
	}

	other, err := Digest(after)
	if err != nil {
		return
	}

	if (one == other) != (len(changes) == 0) {
		t.Errorf("the digests are %s and %s, the changes %v", one, other, changes)
	}
}

// FuzzSettingsOf reads back what a machine says.
func FuzzSettingsOf(f *testing.F) {
	for _, seed := range seedConfigs(f) {
		f.Add(seed)
	}

	bundle := testBundle(f)

	f.Fuzz(func(t *testing.T, cfg []byte) {
		if len(cfg) > largestFuzzed {
			return
		}

		c, m, err := SettingsOf(cfg, bundle)
		if err != nil {
			shows(t, "the error", err.Error(), secretsOf(cfg))
			return
		}

		if again, machine, err := SettingsOf(cfg, bundle); err != nil || !reflect.DeepEqual(again, c) ||
			!reflect.DeepEqual(machine, m) {
			t.Errorf("read again it is another one: %v", err)
		}

		if m.Role != ControlPlane && m.Role != Worker || c.Contract == "" {
			t.Errorf("a %q with the contract %q", m.Role, c.Contract)
		}
	})
}

// FuzzPatch gives patches as people write them, keys in them included; see FuzzValidatePatch.
func FuzzPatch(f *testing.F) {
	for _, seed := range seedConfigs(f)[:5] {
		f.Add(string(seed))
	}

	f.Add("machine:\n  sysctls: {a: \"1\"}\n  certSANs: [x]\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n")
	f.Add(`[{"op": "add", "path": "/machine/sysctls", "value": {"a": "1"}}, {"op": "remove", "path": "/machine/token"}]`)
	f.Add("machine:\n  $patch: delete\n")
	f.Add("apiVersion: v1alpha1\nkind: WatchdogTimerConfig\n$patch: delete\n")

	kept, err := NewGenerator(testCluster("v1.13"), testBundle(f))
	if err != nil {
		f.Fatal(err)
	}

	plain, err := kept.Machine(testMachine(Worker))
	if err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > largestFuzzed {
			return
		}

		m := testMachine(Worker)
		m.Patches = []string{text}
		// One that is kept remembers the patches.
		fresh := &Generator{cluster: kept.cluster, contract: kept.contract, input: kept.input, bundle: kept.bundle}

		if err := ValidatePatch(text, "v1.13"); err != nil {
			shows(t, "the error", err.Error(), secretsOf([]byte(text)))
			return
		}

		patched, err := fresh.Machine(m)
		if err != nil {
			shows(t, "the error", err.Error(), secretsOf([]byte(text), plain.Bytes))
			return
		}

		if digest, err := Digest(patched.Bytes); err != nil || digest != patched.Digest {
			t.Errorf("the configuration has the digest %s, %v, not %s", digest, err, patched.Digest)
		}
	})
}
