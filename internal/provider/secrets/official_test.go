package secrets_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// moveFrom applies a `moved` block to the state of a resource of the official provider.
func moveFrom(t *testing.T, d *tftest.Driven, provider, kind string, state []byte) []*tfprotov6.Diagnostic {
	t.Helper()

	resp, err := d.Server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: provider, SourceTypeName: kind, SourceSchemaVersion: 1,
		SourceState: &tfprotov6.RawState{JSON: state}, TargetTypeName: d.Name,
	})
	tftest.Must(t, err)

	if resp.TargetState != nil {
		d.State, err = resp.TargetState.Unmarshal(tftest.TypeOf(t, d.Name))
		tftest.Must(t, err)
		d.Private = resp.TargetPrivate
	}

	return resp.Diagnostics
}

const officialAddress = "registry.terraform.io/siderolabs/talos"

// The secrets in a state of siderolabs/talos 0.12 become those of talosop_secrets, with the same keys.
func TestSecrets_movedFromTheOfficialProvider(t *testing.T) {
	t.Parallel()

	state, err := os.ReadFile("testdata/official/talos_machine_secrets.json")
	tftest.Must(t, err)

	var wrote struct {
		MachineSecrets struct {
			Certs map[string]struct{ Cert, Key string } `json:"certs"`
		} `json:"machine_secrets"`
	}

	tftest.Must(t, json.Unmarshal(state, &wrote))

	d := tftest.Drive(t, "talosop_secrets", nil)
	if diagnostics := moveFrom(t, d, officialAddress, "talos_machine_secrets", state); len(diagnostics) > 0 {
		t.Fatal(tftest.Show(diagnostics))
	}

	bundle, err := pki.Parse([]byte(tftest.Text(t, d.State, "bundle")))
	tftest.Must(t, err)

	for name, key := range wrote.MachineSecrets.Certs {
		if !strings.Contains(tftest.Text(t, d.State, "bundle"), key.Key) {
			t.Errorf("the key of %s is another one", name)
		}
	}

	if id := tftest.Text(t, d.State, "cluster_id"); id != bundle.ClusterID() || !strings.Contains(string(state), id) {
		t.Errorf("the cluster is %s", id)
	}

	d.ExpectEmpty(t, "after the move", tftest.Config{})
}

// A move from elsewhere, or from an empty state, is refused without quoting it.
func TestSecrets_movedFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ provider, kind, state, says string }{
		{"registry.terraform.io/hashicorp/tls", "tls_private_key", `{}`, "does not include support"},
		{"example.org/somebody/talos", "talos_machine_secrets", `{}`, "does not include support"},
		{officialAddress, "talos_machine_secrets", `{"machine_secrets": "hunter22"}`, "since version 0.3"},
		{officialAddress, "talos_machine_secrets", `{"machine_secrets": {"cluster": {"id": "hunter22"}}}`, "the secrets in it"},
	} {
		d := tftest.Drive(t, "talosop_secrets", nil)

		diagnostics := tftest.Show(moveFrom(t, d, test.provider, test.kind, []byte(test.state)))
		if !strings.Contains(diagnostics, test.says) || strings.Contains(diagnostics, "hunter22") {
			t.Errorf("%s of %s: %s", test.kind, test.provider, diagnostics)
		}
	}
}

// After the move from a state of siderolabs/talos, the refresh reads a machine from itself, with the secrets of the
// provider block. The plan that follows changes nothing.
func TestMachine_movedFromTheOfficialProvider(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 1)
	bundle := tftest.Bundle()
	one := func(m *sim.Machine) tftest.Config {
		return tftest.Config{m.Name(): tftest.Config{"address": m.Address().String(), "hostname": m.Name()}}
	}
	disk := tftest.Config{"disk": "/dev/sda"}

	tftest.Drive(t, "talosop_cluster", nil).Apply(t, tftest.Config{
		"mode": "metal", "name": "test", "endpoint": s.URL, "secrets": bundle, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "on_destroy": "preserve",
		"control_plane": tftest.Config{"install": disk, "machines": one(s.ControlPlane[0])},
		"workers":       tftest.Config{"batch": tftest.Config{"install": disk, "machines": one(s.Workers[0])}},
	}).Must(t)

	for _, m := range []*sim.Machine{s.ControlPlane[0], s.Workers[0]} {
		state, err := json.Marshal(map[string]any{"id": "machine_configuration_apply", "node": m.Address().String(),
			"endpoint": m.Address().String(), "machine_configuration": string(m.Config())})
		tftest.Must(t, err)

		d := tftest.Drive(t, "talosop_machine", tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": bundle}}})
		if diagnostics := moveFrom(t, d, officialAddress, "talos_machine_configuration_apply", state); len(diagnostics) > 0 {
			t.Fatal(tftest.Show(diagnostics))
		}

		d.Refresh(t).Must(t)

		for name, want := range map[string]string{"address": m.Address().String(), "talos_version": "v1.13.0",
			"phase": "Ready"} {
			if got := tftest.Text(t, d.State, name); got != want {
				t.Errorf("%s of %s is %s, want %s", name, m.Name(), got, want)
			}
		}

		d.Refresh(t).Must(t)
	}
}
