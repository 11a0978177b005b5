package machineset

import (
	"bytes"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// A rendering is reused only for the same secrets, settings and machine.
func TestRender_isWhatItIsMadeFrom(t *testing.T) {
	t.Parallel()

	bundle := func() *pki.Bundle {
		b, err := secretstest.Generate()
		if err != nil {
			t.Fatal(err)
		}

		return b
	}
	with := func(change func(*machineconfig.Cluster, *machineconfig.Machine)) Set {
		p := listing(map[string]string{"cp-1": "10.0.0.1"})
		m := p.Machines["cp-1"]
		p.Settings = machineconfig.Cluster{Name: "prod", Endpoint: "https://10.0.0.1:6443", KubernetesVersion: "v1.35.2",
			Contract: "v1.13"}
		m.Config = machineconfig.Machine{Role: machineconfig.ControlPlane, Mode: machineconfig.Metal,
			Install: machineconfig.Install{Disk: "/dev/sda", Image: "example.org/installer:v1.13.0"}}
		change(&p.Settings, &m.Config)
		p.Machines["cp-1"] = m

		return p
	}
	render := func(p Set, b *pki.Bundle) []byte {
		t.Helper()

		files, err := p.Render(b)
		if err != nil {
			t.Fatal(err)
		}

		return files.Configs["cp-1"]
	}

	mine := bundle()
	as := with(func(*machineconfig.Cluster, *machineconfig.Machine) {})
	first := render(as, mine)

	next, err := mine.Rotate(rotation.TalosCA)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(first, render(as, mine)) {
		t.Error("the same is made otherwise the second time")
	}

	for name, other := range map[string][]byte{
		"other secrets":             render(as, bundle()),
		"keys that are turned over": render(as, next),
		"other settings": render(with(func(c *machineconfig.Cluster, _ *machineconfig.Machine) { c.DNSDomain = "a.example" }),
			mine),
		"another patch": render(with(func(_ *machineconfig.Cluster, m *machineconfig.Machine) {
			m.Patches = []string{"machine: {sysctls: {a: b}}"}
		}), mine),
	} {
		if bytes.Equal(first, other) {
			t.Errorf("%s give the same configuration", name)
		}
	}
}
