package machineconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What settings and patches have come to is read back, in the form of either contract.
func TestRegistriesAreReadFromConfigurations(t *testing.T) {
	t.Parallel()

	const (
		main     = "machine:\n  registries:\n    mirrors:\n      ghcr.io:\n        endpoints: [\"https://own.example.com\"]\n        skipFallback: true"
		document = "apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: ghcr.io\nendpoints:\n  - url: https://document.example.com\n    overridePath: true"
	)

	settings := Registries{
		Mirrors: map[string]RegistryMirror{"docker.io": {Endpoints: []RegistryEndpoint{{URL: "https://mirror.example.com", OverridePath: true}}, SkipFallback: true}},
		Auth:    map[string]RegistryAuth{"mirror.example.com": {Username: "u", Password: "p"}},
		TLS:     map[string]RegistryTLS{"mirror.example.com": {InsecureSkipVerify: true}},
	}

	for name, test := range map[string]struct {
		contract, patch string
		want            RegistryMirror
	}{
		"before the documents": {contract: "v1.11", patch: main, want: RegistryMirror{Endpoints: []RegistryEndpoint{{URL: "https://own.example.com"}}, SkipFallback: true}},
		"beside the documents": {contract: "v1.13", patch: main, want: RegistryMirror{Endpoints: []RegistryEndpoint{{URL: "https://own.example.com"}}, SkipFallback: true}},
		"as a document":        {contract: "v1.13", patch: document, want: RegistryMirror{Endpoints: []RegistryEndpoint{{URL: "https://document.example.com", OverridePath: true}}}},
	} {
		c := everything(test.contract)
		c.Registries, c.Patches = settings, []string{test.patch}

		got, err := RegistriesOf(generated(t, c, Machine{Role: ControlPlane, Mode: Metal, Install: Install{Disk: "/dev/sda"}}).Bytes)
		if err != nil {
			t.Fatal(err)
		}

		want := Registries{Auth: settings.Auth, TLS: settings.TLS, Mirrors: map[string]RegistryMirror{"docker.io": settings.Mirrors["docker.io"], "ghcr.io": test.want}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	if _, err := RegistriesOf([]byte("machine:\n  secret: [")); err == nil {
		t.Error("what is no configuration is read")
	}
}
