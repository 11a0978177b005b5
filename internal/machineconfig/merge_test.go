package machineconfig

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const wholeConfiguration = `version: v1alpha1
machine:
    type: worker
    token: machine.hunter2
    certSANs: []
    sysctls:
        a: "1"
cluster:
    controlPlane:
        endpoint: https://10.0.0.10:6443
`

func TestMerge_intoAConfiguration(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		patches []string
		want    string
	}{
		"none": {want: wholeConfiguration},
		"in order": {
			patches: []string{"machine: {sysctls: {a: \"2\", b: \"3\"}}", "machine: {sysctls: {a: \"4\"}}"},
			want:    strings.Replace(wholeConfiguration, "a: \"1\"", "a: \"4\"\n        b: \"3\"", 1),
		},
		"JSON 6902": {
			patches: []string{`[{"op": "replace", "path": "/machine/sysctls/a", "value": "5"}]`},
			want:    strings.Replace(wholeConfiguration, "a: \"1\"", "a: \"5\"", 1),
		},
		"deletion": {
			patches: []string{"machine: {sysctls: {$patch: delete}}"},
			want:    strings.Replace(wholeConfiguration, "    sysctls:\n        a: \"1\"\n", "", 1),
		},
		"documents, of an unknown kind too": {
			patches: []string{"apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: w-1\nauto: off\n",
				"apiVersion: v1alpha1\nkind: NewConfig\nlist: [1]\n", "apiVersion: v1alpha1\nkind: NewConfig\nlist: [2]\n"},
			want: wholeConfiguration + "---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: \"off\"\nhostname: w-1\n---\n" +
				"apiVersion: v1alpha1\nkind: NewConfig\nlist:\n    - 1\n    - 2\n",
		},
	} {
		got, err := Merge(wholeConfiguration, test.patches)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// Patches that are merged change a configuration as each after the other does.
func TestMerge_ofPatches(t *testing.T) {
	t.Parallel()

	patches := []string{
		"machine: {sysctls: {b: \"2\"}, certSANs: [a.test]}",
		"machine: {certSANs: [b.test], network: {interfaces: [{interface: eth0, mtu: 1400}]}}",
		"machine: {network: {interfaces: [{interface: eth0, dhcp: true}, {interface: eth1, dhcp: false}]}}",
		"apiVersion: v1alpha1\nkind: NewConfig\na: {b: 1}\n",
		"apiVersion: v1alpha1\nkind: NewConfig\na: {c: 2}\n---\napiVersion: v1alpha1\nkind: TrustedRootsConfig\n" +
			"name: mine\ncertificates: x\n",
	}

	merged, err := Merge(patches[0], patches[1:])
	if err != nil {
		t.Fatal(err)
	}

	each, err := Merge(wholeConfiguration, patches)
	if err != nil {
		t.Fatal(err)
	}

	atOnce, err := Merge(wholeConfiguration, []string{merged})
	if err != nil {
		t.Fatalf("%v:\n%s", err, merged)
	}

	if changes, err := DiffWhole(each, atOnce); err != nil || len(changes) > 0 {
		t.Errorf("each after the other, and merged: %v, %v", changes, err)
	}

	if err := ValidatePatch(merged, "v1.13"); err != nil {
		t.Error(err)
	}

	// It contains only what was given.
	want := "machine:\n    certSANs:\n        - a.test\n        - b.test\n    network:\n        interfaces:\n" +
		"            - interface: eth0\n              mtu: 1400\n              dhcp: true\n" +
		"            - interface: eth1\n              dhcp: false\n    sysctls:\n        b: \"2\"\n---\n"
	if !strings.HasPrefix(merged, want) {
		t.Errorf("merged:\n%s", merged)
	}
}

func TestMerge_refuses(t *testing.T) {
	t.Parallel()

	const sysctls = "machine: {sysctls: {a: \"1\"}}"

	for _, test := range []struct {
		base        string
		patches     []string
		field, want string
	}{
		{"machine: [", nil, "base", "invalid YAML"},
		{"patch.yaml", nil, "base", `write file("…")`},
		{"[{op: remove, path: /machine}]", nil, "base", "with nothing to apply it to"},
		{"machine: {sysctls: {$patch: delete}}", nil, "base", "with nothing to apply it to"},
		{sysctls, []string{"machine: {sysctls: {$patch: delete}}"}, "patches[0]", "base is a patch itself"},
		{sysctls, []string{sysctls, "apiVersion: v1alpha1\nkind: NewConfig\n$patch: delete\n"}, "patches[1]",
			"base is a patch itself"},
		{sysctls, []string{"[{op: remove, path: /machine/sysctls}]"}, "patches[0]", "base is a patch itself"},
		{wholeConfiguration, []string{"machine: {tokn: hunter2}"}, "patches[0]", "unknown fields: machine.tokn"},
		{wholeConfiguration, []string{"machine: {certSANs: hunter2}"}, "patches[0]", "an invalid patch"},
		{wholeConfiguration, []string{`[{"op": "remove", "path": "/machine/none"}]`}, "patches[0]",
			"a patch that does not apply"},
	} {
		_, err := Merge(test.base, test.patches)

		var wrong *FieldError
		if !errors.As(err, &wrong) || wrong.Field != test.field || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q with %q gives %v, want %s: %s", test.base, test.patches, err, test.field, test.want)
		}

		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a value is quoted: %v", err)
		}
	}
}

// People who compare two configurations ask about images too, which the engine compares by themselves.
func TestDiffWhole_hasImages(t *testing.T) {
	t.Parallel()

	after := strings.Replace(wholeConfiguration, "    token: machine.hunter2\n",
		"    token: machine.hunter3\n    kubelet:\n        image: ghcr.io/siderolabs/kubelet:v1.36.3\n", 1)

	changes, err := DiffWhole(wholeConfiguration, after)
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, c := range changes {
		got = append(got, c.String())
	}

	want := []string{`+ v1alpha1: machine.kubelet.image = "ghcr.io/siderolabs/kubelet:v1.36.3"`,
		"~ v1alpha1: machine.token: (sensitive value) -> (sensitive value)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	for field, texts := range map[string][2]string{"before": {"a: [hunter2", ""}, "after": {"", "a: [hunter2"}} {
		_, err := DiffWhole(texts[0], texts[1])

		var wrong *FieldError
		if !errors.As(err, &wrong) || wrong.Field != field || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", texts, err)
		}
	}
}
