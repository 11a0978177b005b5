package machineconfig

import (
	"strings"
	"testing"
)

func TestConvertPatches_keepsCommentsAndTheRest(t *testing.T) {
	t.Parallel()

	const patch = `# Of the site.

machine:
  certSANs: [talos.test] # ours
  kubelet:
    # More pods.
    extraConfig:
      maxPods: 250 # default 110
  network:
    extraHostEntries:
      # The registry.
      - ip: 10.0.0.1
        aliases: [a, b]
---
apiVersion: v1alpha1
kind: UserVolumeConfig # stays as it is
name: data
`

	const want = `# Of the site.

machine:
  certSANs: [talos.test] # ours
---
apiVersion: v1alpha1
kind: KubeletConfig
# More pods.
config:
  maxPods: 250 # default 110
---
# The registry.
apiVersion: v1alpha1
kind: StaticHostConfig
name: 10.0.0.1
hostnames: [a, b]
---
apiVersion: v1alpha1
kind: UserVolumeConfig # stays as it is
name: data
`

	converted, err := ConvertPatches([]string{patch, "", want}, Worker, "v1.13", DocumentsContract)
	if err != nil {
		t.Fatal(err)
	}

	if got := converted.Patches; got[0] != want || got[1] != "" || got[2] != want {
		t.Errorf("%s", strings.Join(got, "======\n"))
	}

	if kept := converted.Kept; len(kept) != 2 || kept[0].Path != "machine.certSANs" || kept[1].Patch != 2 {
		t.Errorf("kept %v", kept)
	}
}

func TestConvertPatches_listsWhatHasNoEffect(t *testing.T) {
	t.Parallel()

	converted, err := ConvertPatches([]string{"machine: {sysctls: {a: b}}", "cluster: {proxy: {mode: ipvs}}"}, Worker,
		"v1.13", DocumentsContract)
	if err != nil {
		t.Fatal(err)
	}

	if removed := converted.Removed; len(removed) != 1 || removed[0].Patch != 1 || removed[0].Path != "cluster.proxy.mode" ||
		strings.TrimSpace(converted.Patches[1]) != "" {
		t.Errorf("removed %v of %q", removed, converted.Patches)
	}

	// Talos accepts these on workers, and only control planes apply them.
	converted, err = ConvertPatches([]string{"cluster: {inlineManifests: [{name: a, contents: b}]}"}, Worker, "v1.13",
		DocumentsContract)
	if removed := converted.Removed; err != nil || len(removed) != 1 || removed[0].Path != "cluster.inlineManifests" {
		t.Errorf("removed %v of %q: %v", removed, converted.Patches, err)
	}
}

// What patches say together decides, not each of them.
func TestConvertPatches_together(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		patches []string
		want    string
	}{
		"disk is lost when documents merge": {
			[]string{"machine: {install: {disk: /dev/sdb}}", "machine: {install: {image: a.test/i:v1}}"},
			"\n    match: disk.dev_path == \"/dev/sdb\"\n",
		},
		"arguments keep the whole installation": {
			[]string{"machine: {install: {extraKernelArgs: [a]}}", "machine: {install: {image: a.test/i:v1}}"},
			"machine: {install: {image: a.test/i:v1}}",
		},
		"search domains are replaced": {
			[]string{"machine: {network: {searchDomains: [a.test]}}", "machine: {network: {searchDomains: [b.test]}}"},
			"domains: [a.test, b.test]",
		},
		"headers of all manifests": {
			[]string{"cluster: {extraManifestHeaders: {A: b}}", "cluster: {network: {cni: {name: custom, urls: [https://a.test]}}}"},
			"headers:\n  A: b\n",
		},
		"access is switched on later": {
			[]string{"machine: {features: {kubernetesTalosAPIAccess: {allowedRoles: [os:reader]}}}",
				"machine: {features: {kubernetesTalosAPIAccess: {enabled: true}}}"},
			"allowedRoles:\n  - os:reader\n",
		},
		"a name goes before a stable one": {
			[]string{"machine: {network: {hostname: a}}", "machine: {features: {stableHostname: true}}"}, "",
		},
		"all plugins go": {
			[]string{"cluster: {apiServer: {admissionControl: [{name: A, configuration: {a: b}}]}}",
				"cluster: {apiServer: {admissionControl: {$patch: delete}}}"},
			"name: A\n$patch: delete\n",
		},
	} {
		converted, err := ConvertPatches(test.patches, ControlPlane, "v1.13", DocumentsContract)
		if err != nil {
			t.Errorf("%s: %v", name, err)

			continue
		}

		got := converted.Patches[1]
		if !strings.Contains(got, test.want) || test.want == "" && strings.TrimSpace(got) != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestConvertPatches_olderTargets(t *testing.T) {
	t.Parallel()

	const patch = "machine:\n  network:\n    nameservers: [10.0.0.1]\n  env: {A: b}\n  sysctls: {a: b}\n"

	for contract, want := range map[string]string{
		"v1.11": patch,
		"v1.12": "machine:\n  env: {A: b}\n  sysctls: {a: b}\n---\napiVersion: v1alpha1\nkind: ResolverConfig\nnameservers:\n" +
			"  - address: 10.0.0.1\n",
		"v1.13": "machine:\n  sysctls: {a: b}\n---\napiVersion: v1alpha1\nkind: ResolverConfig\nnameservers:\n" +
			"  - address: 10.0.0.1\n---\napiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables: {A: b}\n",
	} {
		converted, err := ConvertPatches([]string{patch}, Worker, "v1.11", contract)
		if err != nil || converted.Patches[0] != want {
			t.Errorf("%s: %v\n%s", contract, err, strings.Join(converted.Patches, ""))
		}
	}
}

func TestConvertPatches_refuses(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		patches        []string
		role           Role
		from, to, want string
	}{
		{nil, "master", "v1.13", "v1.14", "role: "},
		{nil, Worker, "1.13", "v1.14", "from_contract: "},
		{nil, Worker, "v1.13", "v1.99", "to_contract: "},
		{nil, Worker, "v1.14", "v1.13", "to_contract: "},
		{[]string{"a: ["}, Worker, "v1.13", "v1.14", "patches[0]: "},
		{[]string{"", "machine: {network: {nameservers: [a]}}"}, Worker, "v1.13", "v1.14",
			"patches[1]: found machine.network.nameservers"},
		{[]string{"[{op: remove, path: /machine/sysctls/a}]"}, Worker, "v1.13", "v1.14", "patches[0]: found a JSON 6902 patch"},
		{[]string{"[{op: test, path: /machine/sysctls/a, value: b}]"}, Worker, "v1.11", "v1.14",
			"patches[0]: found operation 0 of a JSON 6902 patch"},
		{[]string{"machine: {kubelet: {credentialProviderConfig: {a: b}}}", "machine: {kubelet: {credentialProviderConfig: {c: d}}}"},
			Worker, "v1.13", "v1.14", "patches[1]: found machine.kubelet.credentialProviderConfig"},
		{[]string{"machine: {nodeLabels: {$patch: delete}}"}, Worker, "v1.13", "v1.14", "patches[0]: found machine.nodeLabels"},
	} {
		_, err := ConvertPatches(test.patches, test.role, test.from, test.to)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: %v; want %s", test.patches, err, test.want)
		}
	}
}

// A plan that refuses a patch shows what it is for its contract, for each role, and no secret of it.
func TestRefusal_showsTheConvertedPatch(t *testing.T) {
	t.Parallel()

	const patch = `machine:
  # hunter2
  nodeLabels: {rack: a1, gone: {$patch: delete}}
  env: {PASSWORD: hunter2}
cluster: {proxy: {disabled: true}}
`

	for role, want := range map[Role]string{
		ControlPlane: "kind: KubeProxyConfig\nenabled: false\n", Worker: "labels: {rack: a1, gone: {$patch: delete}}\n",
	} {
		c := testCluster(documentContract)
		c.Patches = []string{"machine: {sysctls: {a: b}}", patch}

		m := testMachine(role)
		m.Patches = []string{"machine: {certSANs: [a.test]}"}

		_, err := Generate(c, m, testBundle(t))

		mistakes := FieldErrors(err)
		if len(mistakes) != 1 || mistakes[0].Field != "patches[1]" || !strings.Contains(mistakes[0].Converted, want) ||
			strings.Contains(mistakes[0].Converted, "hunter2") || !strings.Contains(mistakes[0].Converted, "PASSWORD") {
			t.Errorf("%s: %v\n%s", role, err, mistakes[0].Converted)
		}
	}

	if _, err := with(t, documentContract, "machine: {kubelet: {extraMounts: [{destination: /a}]}}"); FieldErrors(err)[0].Converted != "" {
		t.Errorf("%v", err)
	}

	// A deletion without effect.
	_, err := with(t, documentContract, "cluster: {apiServer: {admissionControl: {$patch: delete}}}")
	if got := FieldErrors(err)[0].Converted; got != "apiVersion: v1alpha1\nkind: KubeAdmissionControlConfig\nname: PodSecurity\n$patch: delete\n" {
		t.Errorf("%v\n%s", err, got)
	}
}
