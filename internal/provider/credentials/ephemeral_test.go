package credentials_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// Credentials for others have the least role, and expire soon; the plan refuses anything else.
func TestCredentials_validatesEphemerals(t *testing.T) {
	t.Parallel()

	server := tftest.Serve(t, nil)

	for _, test := range []struct {
		kind   string
		config tftest.Config
		says   string
	}{
		{"talosop_kubeconfig", tftest.Config{"ttl": "24h"}, ""},
		{"talosop_kubeconfig", tftest.Config{"ttl": tftest.Unknown{}}, ""},
		{"talosop_kubeconfig", tftest.Config{"ttl": "24h1s"}, `[invalid_ttl] Invalid ttl at AttributeName("ttl"): Found "24h1s"`},
		{"talosop_talosconfig", tftest.Config{"ttl": "0s"}, `Found "0s"`},
		{"talosop_talosconfig", tftest.Config{"ttl": "8760h"}, "[invalid_ttl]"},
		{"talosop_talosconfig", tftest.Config{"roles": []any{"os:root"}}, `Found "os:root". Allowed: os:admin`},
	} {
		test.config["cluster"] = tftest.WrittenHandle("10.0.0.11")

		typ := tftest.Schemas(t).EphemeralResourceSchemas[test.kind].ValueType()

		resp, err := server.ValidateEphemeralResourceConfig(t.Context(), &tfprotov6.ValidateEphemeralResourceConfigRequest{
			TypeName: test.kind, Config: tftest.Dynamic(t, tftest.ValueOf(t, typ, test.config))})
		tftest.Must(t, err)

		if diagnostics := tftest.Show(resp.Diagnostics); !strings.Contains(diagnostics, test.says) || (diagnostics == "") != (test.says == "") {
			t.Errorf("%s %v: %s", test.kind, test.config["ttl"], diagnostics)
		}
	}
}
