package machineconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A machine keeps its host name in the form that it has. Nothing else changes, and nothing at all where the names are
// the same.
func TestWithHostnameOf_keepsTheForm(t *testing.T) {
	t.Parallel()

	const (
		plain    = "machine:\n    type: worker\n"
		section  = "machine:\n    type: worker\n    network:\n        hostname: a\n"
		document = "---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n"
		stable   = "---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"
		other    = "---\napiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels:\n    a: b\n"
	)

	for name, test := range map[string]struct{ config, other, want string }{
		"none":                     {plain + other, plain, plain + other},
		"the same":                 {plain + stable + other, plain + stable, plain + stable + other},
		"of the main document":     {plain + stable + other, section, section + other},
		"of a document":            {plain + stable + other, plain + document, plain + other + document},
		"no document any more":     {section, plain + document, plain + document},
		"removed":                  {section + stable, "", plain},
		"another one":              {section, "machine: {network: {hostname: b}}", "machine:\n    type: worker\n    network:\n        hostname: b\n"},
		"a name of Talos's choice": {plain + stable, "machine: {features: {stableHostname: true}}", "machine:\n    type: worker\n    features:\n        stableHostname: true\n"},
	} {
		got, err := WithHostnameOf([]byte(test.config), []byte(test.other))
		if diff := cmp.Diff(test.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}

	if _, err := WithHostnameOf([]byte("a: ["), nil); err == nil {
		t.Error("what is no YAML is changed")
	}
}

// Generated configurations with a host name and without one differ in nothing else.
func TestWithHostnameOf_generatedConfigurations(t *testing.T) {
	t.Parallel()

	for _, contract := range contracts {
		named, unnamed := testMachine(Worker), testMachine(Worker)
		unnamed.Hostname, named.Hostname = "", "w-1"

		own, shared := generated(t, testCluster(contract), named), generated(t, testCluster(contract), unnamed)

		got, err := WithHostnameOf(shared.Bytes, own.Bytes)
		if err != nil {
			t.Fatal(err)
		}

		if digest, err := Digest(got); err != nil || digest != own.Digest {
			changes, _ := Diff(own.Bytes, got)
			t.Errorf("%s: %v, %v", contract, err, changes)
		}

		found, err := Identify(got)
		if err != nil || found.Role != Worker || found.ClusterSecret == "" || found.Hostname != "w-1" {
			t.Errorf("%s: it is that of %+v, %v", contract, found, err)
		}
	}
}
