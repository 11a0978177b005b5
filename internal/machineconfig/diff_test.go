package machineconfig

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(changes []Change) []string {
	var texts []string
	for _, change := range changes {
		texts = append(texts, change.String())
	}

	return texts
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

func digest(t *testing.T, text string) string {
	t.Helper()

	value, err := Digest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	return value
}

func TestDigest_ignoresHowValuesAreWritten(t *testing.T) {
	const base = "version: v1alpha1\nmachine:\n  type: worker\n  time: {bootTimeout: 1m0s}\n  sysctls: {a: \"1\", b: " +
		"\"2\"}\ncluster:\n  controlPlane: {endpoint: https://x:6443}\n  network: {dnsDomain: a.local, podSubnets: [\"fd00::/64\", 10.0.0.0/8]}\n---\napiVersion: v1alpha1\nkind: " +
		"HostnameConfig\nauto: stable\n---\napiVersion: v9\nkind: Future\nlist: [1, {a: b, c: d}]\n"

	for name, same := range map[string]string{
		"the same": base,
		"order of documents": "apiVersion: v9\nkind: Future\nlist: [1, {a: b, c: d}]\n---\napiVersion: v1alpha1\nkind: " +
			"HostnameConfig\nauto: stable\n---\n" + strings.SplitN(base, "---", 2)[0],
		"order of keys": strings.Replace(strings.Replace(base, "{a: \"1\", b: \"2\"}", "{b: \"2\", a: \"1\"}", 1),
			"{a: b, c: d}", "{c: d, a: b}", 1),
		"comments":            "# hello\n" + strings.ReplaceAll(base, "\n", " # x\n"),
		"separators":          "---\n" + base + "---\n---\n# nothing\n",
		"a directive":         "# hello\n%YAML 1.1\n---\n" + base,
		"line breaks":         strings.ReplaceAll(base, "\n", "\r\n"),
		"a duration":          strings.Replace(base, "1m0s", "60s", 1),
		"a network":           strings.Replace(base, "fd00::/64", "FD00:0::/64", 1),
		"a domain":            strings.Replace(base, "a.local", "A.Local", 1),
		"a number for a text": strings.Replace(base, `"1"`, "1", 1),
		"flow and block":      strings.Replace(base, "list: [1, {a: b, c: d}]", "list:\n  - 1\n  - a: b\n    c: d", 1),
	} {
		if digest(t, same) != digest(t, base) {
			t.Errorf("%s changes the digest", name)
		}

		if changes, err := Diff([]byte(base), []byte(same)); err != nil || len(changes) > 0 {
			t.Errorf("%s: the difference is %v, %v", name, changes, err)
		}
	}

	for name, other := range map[string]string{
		"a value":                       strings.Replace(base, `"1"`, `"3"`, 1),
		"a value of an unknown kind":    strings.Replace(base, "c: d", "c: e", 1),
		"the order of an unknown list":  strings.Replace(base, "[1, {a: b, c: d}]", "[{a: b, c: d}, 1]", 1),
		"the order of networks":         strings.Replace(base, "[\"fd00::/64\", 10.0.0.0/8]", "[10.0.0.0/8, \"fd00::/64\"]", 1),
		"a document less":               strings.SplitN(base, "---\napiVersion: v9", 2)[0],
		"a type in an unknown document": strings.Replace(base, "[1,", `["1",`, 1),
		"a field of a newer Talos":      strings.Replace(base, "machine:\n", "machine:\n  future: 1\n", 1),
	} {
		if digest(t, other) == digest(t, base) {
			t.Errorf("%s does not change the digest", name)
		}

		if changes, err := Diff([]byte(base), []byte(other)); err != nil || len(changes) == 0 {
			t.Errorf("%s: no difference, %v", name, err)
		}
	}
}

// An installation without an image that does not say how it ends is the generated one, which reboots.
func TestDigest_ofInstallations(t *testing.T) {
	const base = "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\nprovisioning: {diskSelector: {match: disk.cdrom}}\n"

	for more, same := range map[string]bool{
		"reboot: true\n":                                  true,
		"reboot: false\n":                                 false,
		"installer: {image: a.test/a:v1}\n":               false,
		"installer: {image: a.test/a:v1}\nreboot: true\n": false,
	} {
		changes, err := Diff([]byte(base), []byte(base+more))
		if err != nil || (len(changes) == 0) != same || (digest(t, base) == digest(t, base+more)) != same {
			t.Errorf("with %q, the difference is %v, %v", more, changes, err)
		}
	}
}

func TestDigest_refusesWhatIsNoConfiguration(t *testing.T) {
	for text, want := range map[string]string{"": "no configuration documents", "# x\n---\n": "no configuration documents",
		"a: [": "not YAML"} {
		if _, err := Digest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}

func TestDiff_showsNoSecrets(t *testing.T) {
	const secret = "hunter2hunter2"

	data, err := os.ReadFile("testdata/talosctl/v1.13-controlplane.yaml")
	if err != nil {
		t.Fatal(err)
	}

	other := generated(t, testCluster("v1.13"), testMachine(ControlPlane)).Bytes

	withSecrets, err := with(t, "v1.13", `
machine:
  files: [{path: /var/x, op: create, permissions: 0o600, content: `+secret+`}]
  env: {API: `+secret+`, A.B: `+secret+`, https_proxy: http://u:`+secret+`@proxy}
  sysctls: {visible: "yes"}
cluster:
  secretboxEncryptionSecret: `+secret+`
  inlineManifests: [{name: x, contents: `+secret+`}]
  externalCloudProvider: {enabled: true, manifests: ["https://u:`+secret+`@x.test/m.yaml"]}
  apiServer: {env: {X: `+secret+`, X.Y: `+secret+`}, extraArgs: {oidc-client-secret: `+secret+`}}
---
apiVersion: v1alpha1
kind: RegistryAuthConfig
name: r.test
username: shown
password: `+secret+`
---
apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: tailscale
environment: [TS_AUTHKEY=`+secret+`]
configFiles: [{content: `+secret+`, mountPath: /etc/x}]
---
apiVersion: v1alpha1
kind: EnvironmentConfig
variables: {X: `+secret+`}
---
apiVersion: v9
kind: Unknown
anything: `+secret+`
`)
	if err != nil {
		t.Fatal(err)
	}

	withSecrets = strings.Replace(withSecrets, "    token: "+testBundle(t).Secrets().TrustdInfo.Token+"\n",
		"    token: "+secret+"\n", 1)

	for _, pair := range [][2][]byte{{data, other}, {other, data}, {other, []byte(withSecrets)},
		{[]byte(withSecrets), other}, {data, []byte(withSecrets)}} {
		changes, err := Diff(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}

		text := fmt.Sprintf("%v %+v", strings.Join(lines(changes), "\n"), changes)
		if strings.Contains(text, secret) || strings.Contains(text, "PRIVATE") {
			t.Errorf("a secret is shown:\n%s", text)
		}

		s := testBundle(t).Secrets()
		for _, known := range []string{s.Cluster.Secret, s.Secrets.BootstrapToken, s.TrustdInfo.Token,
			s.Secrets.SecretboxEncryptionSecret} {
			if strings.Contains(text, known) {
				t.Error("a secret of the bundle is shown")
			}
		}
	}

	changes, err := Diff(other, []byte(withSecrets))
	if err != nil {
		t.Fatal(err)
	}

	got := lines(changes)
	for _, want := range []string{
		"~ v1alpha1: machine.token: (sensitive value) -> (sensitive value)",
		"+ v1alpha1: machine.files[0].content = (sensitive value)",
		`+ v1alpha1: machine.files[0].path = "/var/x"`,
		`+ v1alpha1: machine.sysctls.visible = "yes"`,
		`+ v1alpha1: cluster.externalCloudProvider.manifests[0] = "https://(sensitive value)@x.test/m.yaml"`,
		`+ RegistryAuthConfig/r.test: username = "shown"`,
		"+ RegistryAuthConfig/r.test: password = (sensitive value)",
		"+ Unknown: anything = (sensitive value)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestDiff_isOrdered(t *testing.T) {
	before := "machine:\n  type: worker\n  certSANs: [" + strings.Repeat("a, ", 11) +
		"a]\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n---\napiVersion: v9\nkind: Empty\n"
	after := strings.Replace(strings.ReplaceAll(before, "a, ", "b, "), "stable", "off", 1)
	after = strings.Replace(after, "kind: Empty", "kind: Other", 1)

	changes, err := Diff([]byte(before), []byte(after))
	if err != nil {
		t.Fatal(err)
	}

	var want []string
	for i := range 11 {
		want = append(want, fmt.Sprintf(`~ v1alpha1: machine.certSANs[%d]: "a" -> "b"`, i))
	}

	want = append(want, "- Empty = (empty)", `~ HostnameConfig: auto: "stable" -> "off"`, "+ Other = (empty)")

	if diff := cmp.Diff(want, lines(changes)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNeedsReboot_asTalosDecides(t *testing.T) {
	for _, test := range []struct {
		name, patch string
		want        []string
	}{
		{"nothing", "", nil},
		{"the cluster", "cluster: {allowSchedulingOnControlPlanes: true, apiServer: {extraArgs: {a: b}}}", nil},
		{"settings of a running machine", "debug: true\nmachine: {certSANs: [x], sysctls: {a: b}, install: {image: x}, " +
			"kubelet: {extraArgs: {a: b}}, nodeLabels: {a: b}, nodeTaints: {a: b:NoSchedule}, time: {disabled: true}, kernel: " +
			"{modules: [{name: x}]}, logging: {destinations: [{endpoint: \"udp://1.2.3.4:1\", format: json_lines}]}}", nil},
		{"features of a running machine", "machine: {features: {kubePrism: {enabled: false}, imageCache: {localEnabled: " +
			"true}, kubernetesTalosAPIAccess: {enabled: true, allowedRoles: [os:reader], allowedKubernetesNamespaces: [x]}}}",
			nil},
		{"documents", "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {maxSize: " +
			"10GiB}\n---\napiVersion: v9\nkind: X\n", nil},
		{"files and environment", "machine: {files: [{path: /var/x, op: create, content: x, permissions: 0o600}], env: {a: " +
			"b}}", []string{"machine.files", "machine.env"}},
		{"udev", "machine: {udev: {rules: [x]}}", []string{"machine.udev"}},
		{"an empty list", "machine: {disks: []}", nil},
		{"quotas", "machine: {features: {diskQuotaSupport: false}}", []string{"machine.features.diskQuotaSupport"}},
		{"encryption", "machine: {systemDiskEncryption: {ephemeral: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}}",
			[]string{"machine.systemDiskEncryption"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, err := with(t, "v1.13")
			if err != nil {
				t.Fatal(err)
			}

			after, err := with(t, "v1.13", test.patch)
			if err != nil {
				t.Fatal(err)
			}

			for _, pair := range [][2]string{{before, after}, {after, before}} {
				reboot, fields, err := NeedsReboot([]byte(pair[0]), []byte(pair[1]), "v1.13.6")
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(sorted(test.want), sorted(fields)); diff != "" || reboot != (len(test.want) > 0) {
					t.Errorf("reboot %t (-want +got):\n%s", reboot, diff)
				}
			}
		})
	}

	token, fields, err := NeedsReboot([]byte("machine: {type: worker, token: a}"),
		[]byte("machine: {type: worker, token: b}"), "v1.13.6")
	if err != nil || !token || !slices.Equal(fields, []string{"machine.token"}) {
		t.Errorf("another token: reboot %t for %v, %v", token, fields, err)
	}

	// Talos compares the structures: an empty section is not the same as none.
	reboot, fields, err := NeedsReboot([]byte("machine: {type: worker}"),
		[]byte("machine: {type: worker, features: {}, files: []}\npersist: true"), "v1.13.6")
	if err != nil || !reboot {
		t.Errorf("reboot %t, %v", reboot, err)
	}

	if diff := cmp.Diff([]string{"persist", "machine.files", "machine.features"}, fields); diff != "" {
		t.Error(diff)
	}

	if _, _, err := NeedsReboot([]byte("machine: {type: worker, future: 1}"),
		[]byte("machine: {type: worker}"), "v1.13.6"); !errors.Is(err, ErrUnknownForm) {
		t.Errorf("a newer form gives %v", err)
	}

	if _, _, err := NeedsReboot([]byte("apiVersion: v9\nkind: X"), []byte("machine: {type: worker}"), ""); !errors.Is(err,
		ErrNoDocuments) {
		t.Errorf("no main document gives %v", err)
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("machine: {type: worker}\n---\napiVersion: v9\nkind: X\n")
	f.Add("a: &a [1, *a]\n")
	f.Add("? {a: b}\n: c\n---\n- 1\n--- !!binary x\n")
	f.Add("x: .nan\ny: 2020-01-01\nz: 0x10\n")
	f.Add("a: 1\na: 2\n")

	f.Fuzz(func(t *testing.T, text string) {
		first, err := Digest([]byte(text))
		if err != nil {
			return
		}

		again, err := Digest([]byte("# comment\n" + text + "\n---\n"))
		// A comment in front is not possible before a directive.
		if err == nil && again != first && !strings.HasPrefix(text, "%") {
			t.Errorf("%q: %s, then %s", text, first, again)
		}

		if changes, err := Diff([]byte(text), []byte(text)); err != nil || len(changes) > 0 {
			t.Errorf("%q differs from itself: %v %v", text, changes, err)
		}
	})
}
