package provider

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// moveFrom is what a `moved` block does to the state of a resource of the official provider.
func (d *driven) moveFrom(t *testing.T, provider, kind string, state []byte) []*tfprotov6.Diagnostic {
	t.Helper()

	resp, err := d.Server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: provider, SourceTypeName: kind, SourceSchemaVersion: 1,
		SourceState: &tfprotov6.RawState{JSON: state}, TargetTypeName: d.Name,
	})
	must(t, err)

	if resp.TargetState != nil {
		d.state, err = resp.TargetState.Unmarshal(typeOf(t, d.Name))
		must(t, err)
		d.private = resp.TargetPrivate
	}

	return resp.Diagnostics
}

const officialAddress = "registry.terraform.io/siderolabs/talos"

// The secrets of a state that siderolabs/talos 0.12 wrote become those of talosop_secrets, and no key is another one.
func TestSecrets_movedFromTheOfficialProvider(t *testing.T) {
	t.Parallel()

	state, err := os.ReadFile("testdata/official/talos_machine_secrets.json")
	must(t, err)

	var wrote struct {
		MachineSecrets struct {
			Certs map[string]struct{ Cert, Key string } `json:"certs"`
		} `json:"machine_secrets"`
	}

	must(t, json.Unmarshal(state, &wrote))

	d := drive(t, "talosop_secrets", nil)
	if said := d.moveFrom(t, officialAddress, "talos_machine_secrets", state); len(said) > 0 {
		t.Fatal(show(said))
	}

	bundle, err := pki.Parse([]byte(textOf(t, d.state, "bundle")))
	must(t, err)

	for name, key := range wrote.MachineSecrets.Certs {
		if !strings.Contains(textOf(t, d.state, "bundle"), key.Key) {
			t.Errorf("the key of %s is another one", name)
		}
	}

	if id := textOf(t, d.state, "cluster_id"); id != bundle.ClusterID() || !strings.Contains(string(state), id) {
		t.Errorf("the cluster is %s", id)
	}

	d.expectEmpty(t, "after the move", configuration{})
}

// What is moved from elsewhere, or says nothing, is refused without a quote of it.
func TestSecrets_movedFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ provider, kind, state, says string }{
		{"registry.terraform.io/hashicorp/tls", "tls_private_key", `{}`, "does not include support"},
		{"example.org/somebody/talos", "talos_machine_secrets", `{}`, "does not include support"},
		{officialAddress, "talos_machine_secrets", `{"machine_secrets": "hunter22"}`, "since version 0.3"},
		{officialAddress, "talos_machine_secrets", `{"machine_secrets": {"cluster": {"id": "hunter22"}}}`, "the secrets in it"},
	} {
		d := drive(t, "talosop_secrets", nil)

		said := show(d.moveFrom(t, test.provider, test.kind, []byte(test.state)))
		if !strings.Contains(said, test.says) || strings.Contains(said, "hunter22") {
			t.Errorf("%s of %s: %s", test.kind, test.provider, said)
		}
	}
}

// A machine of a state of siderolabs/talos is read off itself by the refresh after the move, with the secrets of the
// provider block, and the plan that follows does nothing to it.
func TestMachine_movedFromTheOfficialProvider(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1)
	bundle := bundleOnce()
	one := func(m *sim.Machine) configuration {
		return configuration{m.Name(): configuration{"address": m.Address().String(), "hostname": m.Name()}}
	}
	disk := configuration{"disk": "/dev/sda"}

	drive(t, theClusterKind, nil).apply(t, configuration{
		"mode": "metal", "name": "test", "endpoint": s.endpoint, "secrets": bundle, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "on_destroy": "preserve",
		"control_plane": configuration{"install": disk, "machines": one(s.controlPlane[0])},
		"workers":       configuration{"batch": configuration{"install": disk, "machines": one(s.workers[0])}},
	}).must(t)

	for _, m := range []*sim.Machine{s.controlPlane[0], s.workers[0]} {
		state, err := json.Marshal(map[string]any{"id": "machine_configuration_apply", "node": m.Address().String(),
			"endpoint": m.Address().String(), "machine_configuration": string(m.Config())})
		must(t, err)

		d := drive(t, "talosop_machine", configuration{"clusters": configuration{"test": configuration{"secrets": bundle}}})
		if said := d.moveFrom(t, officialAddress, "talos_machine_configuration_apply", state); len(said) > 0 {
			t.Fatal(show(said))
		}

		d.refresh(t).must(t)

		for name, want := range map[string]string{"address": m.Address().String(), "talos_version": "v1.13.0",
			"phase": "Ready"} {
			if got := textOf(t, d.state, name); got != want {
				t.Errorf("%s of %s is %s, want %s", name, m.Name(), got, want)
			}
		}

		d.refresh(t).must(t)
	}
}

// textOf is an attribute of a state.
func textOf(t *testing.T, state tftypes.Value, name string) string {
	t.Helper()

	var object map[string]tftypes.Value

	must(t, state.As(&object))

	var text string

	must(t, object[name].As(&text))

	return text
}
