package talos

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

func TestMachineSectionOf_documents(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		config string
		role   step.Role
		fqdn   bool
		err    bool
	}{
		"control plane": {config: "version: v1alpha1\nmachine:\n  type: controlplane\n", role: step.ControlPlane},
		"init":          {config: "machine: {type: init}", role: step.ControlPlane},
		"worker":        {config: "machine: {type: worker}", role: step.Worker},
		"join":          {config: "machine: {type: join}", role: step.Worker},
		"no type":       {config: "machine: {token: a}", role: step.Worker},
		"a document of an unknown kind first": {
			config: "apiVersion: v1alpha9\nkind: FutureConfig\nmachines: [1]\n---\nmachine:\n  type: controlplane\n  future: " +
				"{a: 1}\n  kubelet: {registerWithFQDN: true}\n",
			role: step.ControlPlane, fqdn: true,
		},
		"no machine section": {config: "apiVersion: v1alpha1\nkind: HostnameConfig\n", err: true},
		"nothing":            {config: "", err: true},
		"not YAML":           {config: "machine: {type: [secret-token", err: true},
		"another shape":      {config: "machine: secret-token", err: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			section, err := machineSectionOf([]byte(test.config))
			if test.err {
				if err == nil || strings.Contains(err.Error(), "secret-token") {
					t.Errorf("err = %v, want one that quotes nothing", err)
				}

				return
			}

			if err != nil || section.role() != test.role || section.Kubelet.RegisterWithFQDN != test.fqdn {
				t.Errorf("section %+v, error %v, want role %q", section, err, test.role)
			}
		})
	}
}

func TestUsableUUID_refusesPlaceholders(t *testing.T) {
	t.Parallel()

	for given, want := range map[string]string{
		"":                                     "",
		"4C4C4544-0044-4810-8031-B4C04F4E3332": "4c4c4544-0044-4810-8031-b4c04f4e3332",
		"00000000-0000-0000-0000-000000000000": "",
		"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF": "",
		"03000200-0400-0500-0006-000700080009": "",
	} {
		if got := usableUUID(given); got != want {
			t.Errorf("usableUUID(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestNodeName_ofCertificate(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ short, long string }{
		"cp-1":               {"cp-1", "cp-1"},
		"CP_1.Example.Org":   {"cp-1", "cp-1.example.org"},
		"talos-8x1-f3q.":     {"talos-8x1-f3q", "talos-8x1-f3q"},
		"-wörker-.local":     {"wrker", "wrker-.local"},
		"":                   {"", ""},
		"node.a.example.com": {"node", "node.a.example.com"},
	}
	for fqdn, want := range tests {
		p := peer{fqdn: fqdn}
		if short, long := p.nodeName(false), p.nodeName(true); short != want.short || long != want.long {
			t.Errorf("%q: %q and %q, want %q and %q", fqdn, short, long, want.short, want.long)
		}
	}
}
