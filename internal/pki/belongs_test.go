package pki

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func kubeconfigOf(t *testing.T, b *Bundle, user string) string {
	t.Helper()

	file, err := b.Kubeconfig(KubeconfigInput{Cluster: "prod", Server: "https://10.0.0.10:6443", User: user,
		Groups: []string{"system:masters"}, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	return string(file)
}

func talosconfigOf(t *testing.T, b *Bundle) string {
	t.Helper()

	file, err := b.Talosconfig(TalosconfigInput{Context: "prod", Endpoints: []string{"10.0.0.11"},
		Roles: []string{"os:reader"}, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	return string(file)
}

func otherBundle(t *testing.T) *Bundle {
	t.Helper()

	bundle, err := Generate()
	if err != nil {
		t.Fatal(err)
	}

	return bundle
}

// Content of one cluster alone is distinguished from other content, even after a manual edit.
func TestOnlyKubeconfigOf_oneCluster(t *testing.T) {
	bundle, other := testBundle(t), otherBundle(t)
	own := bundle.Authority("kubernetes").Fingerprint
	file, foreign := kubeconfigOf(t, bundle, "jane"), kubeconfigOf(t, other, "jane")

	// The part of a file below a heading.
	part := func(file, heading, end string) string {
		_, rest, _ := strings.Cut(file, heading+":\n")
		found, _, _ := strings.Cut(rest, end)

		return found
	}

	for name, test := range map[string]struct {
		file string
		want bool
	}{
		"as it was written":    {file, true},
		"with a namespace":     {strings.Replace(file, "namespace: default", "namespace: web", 1), true},
		"with another server":  {strings.Replace(file, "10.0.0.10", "localhost", 1), true},
		"of another cluster":   {foreign, false},
		"with another cluster": {strings.Replace(file, "users:\n", "users:\n"+part(foreign, "users", "\x00"), 1), false},
		"another one's server": {strings.Replace(file, "clusters:\n", "clusters:\n"+
			part(foreign, "clusters", "contexts:"), 1), false},
		"with a token": {strings.Replace(file, "client-key-data:",
			"token: abc\n        client-key-data:", 1), false},
		"no YAML":         {"a: [", false},
		"of another kind": {talosconfigOf(t, bundle), false},
		"empty":           {"", false},
	} {
		if got := OnlyKubeconfigOf([]byte(test.file), own, "another"); got != test.want {
			t.Errorf("%s: %t\n%s", name, got, test.file)
		}
	}

	if OnlyKubeconfigOf([]byte(file)) {
		t.Error("a file is of no cluster in particular")
	}
}

func TestOnlyTalosconfigOf_oneCluster(t *testing.T) {
	bundle, other := testBundle(t), otherBundle(t)
	own := bundle.Authority("talos").Fingerprint
	file, foreign := talosconfigOf(t, bundle), talosconfigOf(t, other)
	_, contexts, _ := strings.Cut(foreign, "contexts:\n")

	for name, test := range map[string]struct {
		file string
		want bool
	}{
		"as it was written":    {file, true},
		"with other endpoints": {strings.Replace(file, "10.0.0.11", "10.0.0.12", 1), true},
		"of another cluster":   {foreign, false},
		"with another cluster": {strings.Replace(file, "contexts:\n", "contexts:\n"+
			strings.Replace(contexts, "prod:", "other:", 1), 1), false},
		"with a key of Omni": {strings.Replace(file, "        crt:", "        auth:\n            siderov1:\n"+
			"                identity: jane\n        crt:", 1), false},
		"of another kind": {kubeconfigOf(t, bundle, "jane"), false},
		"empty":           {"", false},
	} {
		if got := OnlyTalosconfigOf([]byte(test.file), own); got != test.want {
			t.Errorf("%s: %t\n%s", name, got, test.file)
		}
	}
}

// The fingerprint tells every edit but one of the key, and can be known by everybody.
func TestConfigFingerprint_leavesOutTheKey(t *testing.T) {
	bundle := testBundle(t)

	for name, test := range map[string]struct{ file, key, edit string }{
		"kubeconfig":  {kubeconfigOf(t, bundle, "jane"), "client-key-data: ", "namespace: "},
		"talosconfig": {talosconfigOf(t, bundle), "key: ", "endpoints:"},
	} {
		fingerprint := ConfigFingerprint([]byte(test.file))
		before, after, _ := strings.Cut(test.file, test.key)
		_, after, _ = strings.Cut(after, "\n")

		if got := ConfigFingerprint([]byte(before + test.key + "x\n" + after)); got != fingerprint {
			t.Errorf("%s: the fingerprint depends on the key", name)
		}

		for _, edited := range []string{strings.Replace(test.file, test.edit, test.edit+" x", 1), test.file + "\n", ""} {
			if ConfigFingerprint([]byte(edited)) == fingerprint {
				t.Errorf("%s: an edit goes unnoticed:\n%s", name, edited)
			}
		}
	}
}

func TestUnknownRoles_areNamed(t *testing.T) {
	unknown, known := UnknownRoles([]string{"os:reader", "admin"})
	if !slices.Equal(unknown, []string{"admin"}) || !slices.Contains(known, "os:etcd:backup") {
		t.Errorf("unknown are %v of %v", unknown, known)
	}
}
