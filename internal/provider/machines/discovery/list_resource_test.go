package discovery_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// rack is a network whose first addresses belong to machines of a site.
func rack(s *sitetest.Site) string { return netip.PrefixFrom(s.Network().Addr(), 28).String() }

// listedMachines is a member of a cluster, one of another cluster and a machine in maintenance mode, and the provider that
// knows the secrets of the first cluster.
func listedMachines(t *testing.T) (s *sitetest.Site, provider tftest.Config) {
	t.Helper()

	s = sitetest.New(t, 1, 2)
	_, provided := s.MadeElsewhere(t, "machine: {sysctls: {net.core.somaxconn: \"1024\"}}")

	endpoint, err := s.Endpoint()
	tftest.Must(t, err)

	tftest.Drive(t, "talosop_control_plane", nil).Apply(t, tftest.Config{
		"mode": "metal", "name": "other", "endpoint": endpoint, "secrets": tftest.NewBundle(t), "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "install": tftest.Config{"disk": "/dev/sda"}, "allow_bootstrap": true,
		"machines": tftest.Config{"stranger": tftest.Config{"address": s.Workers[0].Address().String()}},
	}).Must(t)

	return s, provided()
}

// Every machine of a network is listed with its state and the identity for an import, and nothing is changed.
func TestQuery_machinesOfANetwork(t *testing.T) {
	t.Parallel()

	s, provider := listedMachines(t)
	member, stranger, waiting := s.ControlPlane[0], s.Workers[0], s.Workers[1]

	s.ForgetCalls()

	found, diagnostics := tftest.Query(t, provider, "talosop_machine",
		tftest.Config{"networks": []any{rack(s)}, "connect_timeout": "10s"}, true, 100)
	if diagnostics != "" || len(found) != 3 {
		t.Fatalf("it found %s, and says %s", tftest.Displays(found), diagnostics)
	}

	s.ExpectNothingSent(t)

	for i, want := range []struct{ display, identity string }{
		{
			fmt.Sprintf("%s: control plane of test, running, Talos v1.13.0, cp-1, UUID %s", member.Address(), member.UUID()),
			fmt.Sprintf("test [%s] [cp-1=%[1]s]", member.Address()),
		},
		{
			fmt.Sprintf("%s: member of another cluster, not asked, stranger", stranger.Address()),
			fmt.Sprintf(" [] [stranger=%s]", stranger.Address()),
		},
		{
			fmt.Sprintf("%s: maintenance, Talos v1.13.0, UUID %s", waiting.Address(), waiting.UUID()),
			fmt.Sprintf(" [] [%s=%[1]s]", waiting.Address()),
		},
	} {
		if found[i].Display != want.display || found[i].Diagnostics != "" {
			t.Errorf("%d is %q, and says %q, want %q", i, found[i].Display, found[i].Diagnostics, want.display)
		}

		if got := identityText(t, found[i]); got != want.identity {
			t.Errorf("the identity of %s is %s, want %s", want.display, got, want.identity)
		}

		if got := tftest.Text(t, tftypes.NewValue(tftest.TypeOf(t, "talosop_machine"), found[i].Resource),
			"address"); !strings.HasPrefix(
			want.display, got+":") {
			t.Errorf("the resource of %s has the address %s", want.display, got)
		}
	}

	// For a member this is everything that an import writes.
	imported := tftest.Drive(t, "talosop_machine", provider)
	imported.Import(t, tftest.JSON(t, map[string]any{"cluster": "test",
		"control_plane": sitetest.Addresses(s.ControlPlane),
		"machines":      sitetest.Addresses(s.ControlPlane)})).Must(t)

	if got := tftypes.NewValue(tftest.TypeOf(t, "talosop_machine"), found[0].Resource); !strings.Contains(got.String(),
		"net.core.somaxconn") || tftest.Text(t, got, "name") != tftest.Text(t, imported.State, "name") ||
		!tftest.FieldsOf(t, got)["config_patches"].Equal(tftest.FieldsOf(t, imported.State)["config_patches"]) {
		t.Errorf("the resource is %s, and an import has %s", got, imported.State)
	}
}

func identityText(t *testing.T, q tftest.Found) string {
	t.Helper()

	list := func(name string) []string {
		var (
			values []tftypes.Value
			texts  []string
		)

		tftest.Must(t, q.Identity[name].As(&values))

		for _, v := range values {
			var one string
			tftest.Must(t, v.As(&one))

			texts = append(texts, one)
		}

		return texts
	}

	var cluster *string

	tftest.Must(t, q.Identity["cluster"].As(&cluster))

	if cluster == nil {
		cluster = new(string)
	}

	return fmt.Sprint(*cluster, " ", list("control_plane"), " ", list("machines"))
}

// The arguments limit what is listed and asked; a named address that does not answer is reported.
func TestQuery_machinesAsAsked(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 0, 2)
	first, second := s.Workers[0].Address().String(), s.Workers[1].Address().String()

	silent, err := s.Reserve()
	tftest.Must(t, err)

	for name, test := range map[string]struct {
		config tftest.Config
		limit  int64
		found  []string
		says   string
	}{
		"in the order that is given": {config: tftest.Config{"addresses": []any{second, first}},
			found: []string{second, first}},
		"one of them": {config: tftest.Config{"addresses": []any{second, first}}, limit: 1,
			found: []string{second}},
		"without maintenance": {config: tftest.Config{"addresses": []any{first}, "maintenance": false}},
		"maintenance alone": {config: tftest.Config{"addresses": []any{first}, "maintenance": true,
			"connections": 1}, found: []string{first}},
		"no server at an address": {config: tftest.Config{"addresses": []any{silent.String(), first}}, found: []string{first},
			says: silent.String() + ": unreachable"},
		"no server in a network": {config: tftest.Config{"networks": []any{silent.String() + "/32"}}},
		"nowhere":                {config: tftest.Config{}, says: "Found neither `addresses` nor `networks`"},
		"too many": {config: tftest.Config{"networks": []any{s.Network().String()}, "max_addresses": 1000},
			says: "Found 2046 addresses. Allowed: 1000"},
		"no such cluster": {config: tftest.Config{"addresses": []any{first}, "cluster": "prod"},
			says: "The provider has no `clusters`"},
		"no such file": {config: tftest.Config{"addresses": []any{first}, "secrets_file": "nowhere.yaml"},
			says: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found, diagnostics := tftest.Query(t, nil, "talosop_machine", test.config, false, test.limit)

			var at []string

			for _, q := range found {
				address, _, _ := strings.Cut(q.Display, ": ")
				at = append(at, address)
			}

			if !slices.Equal(at, test.found) || !strings.Contains(diagnostics, test.says) || test.says == "" && diagnostics != "" {
				t.Errorf("it found %v, want %v, and says %q, want %q", at, test.found, diagnostics, test.says)
			}
		})
	}
}

// The secrets of a cluster may be only in a file, which the identity then names.
func TestQuery_machinesOfAFile(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	s.MadeElsewhere(t, "machine: {sysctls: {net.core.somaxconn: \"1024\"}}")

	secrets := filepath.Join(t.TempDir(), "secrets.yaml")

	tftest.Must(t, os.WriteFile(secrets, []byte(tftest.Bundle()), 0o600))

	found, diagnostics := tftest.Query(t, nil, "talosop_machine",
		tftest.Config{"addresses": []any{s.ControlPlane[0].Address().String()}, "secrets_file": secrets}, true, 0)
	if len(found) != 1 || found[0].Diagnostics != "" || diagnostics != "" || !strings.Contains(found[0].Display, "control plane of "+secrets) {
		t.Fatalf("it found %s, and says %s", tftest.Displays(found), diagnostics)
	}

	identity := tftypes.NewValue(tftest.IdentityTypeOf(t, "talosop_machine"), found[0].Identity)
	if tftest.Text(t, identity, "secrets") != secrets || tftest.Text(t, identity, "cluster") != "" {
		t.Errorf("the identity is %s", identity)
	}
}
