package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Credentials for others have the least role, and an end that is near; what says otherwise is refused in the plan.
func TestCredentials_validatesEphemerals(t *testing.T) {
	t.Parallel()

	server := serving(t, nil)

	for _, test := range []struct {
		kind   string
		config configuration
		says   string
	}{
		{"talosop_kubeconfig", configuration{"ttl": "24h"}, ""},
		{"talosop_kubeconfig", configuration{"ttl": unknownValue{}}, ""},
		{"talosop_kubeconfig", configuration{"ttl": "24h1s"}, `Found "24h1s". Allowed is a duration of more than nothing and ` +
			"at most 24h"},
		{"talosop_talosconfig", configuration{"ttl": "0s"}, `Found "0s"`},
		{"talosop_talosconfig", configuration{"ttl": "8760h"}, "Give the credentials the length of a run"},
		{"talosop_talosconfig", configuration{"roles": []any{"os:root"}}, `Found "os:root". Allowed are os:admin`},
	} {
		test.config["cluster"] = writtenHandle("10.0.0.11")

		typ := schemas(t).EphemeralResourceSchemas[test.kind].ValueType()

		resp, err := server.ValidateEphemeralResourceConfig(t.Context(), &tfprotov6.ValidateEphemeralResourceConfigRequest{
			TypeName: test.kind, Config: dynamic(t, valueOf(t, typ, test.config))})
		must(t, err)

		if said := show(resp.Diagnostics); !strings.Contains(said, test.says) || (said == "") != (test.says == "") {
			t.Errorf("%s %v: %s", test.kind, test.config["ttl"], said)
		}
	}
}
