package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// The credentials of the provider are validated, described and never shown.
func TestProviderStore_credentials(t *testing.T) {
	t.Parallel()

	schemas := tftest.Schemas(t)

	tftest.WalkAttributes("provider", schemas.Provider.Block.Attributes, func(where string, a *tfprotov6.SchemaAttribute) {
		if a.Description == "" || (a.Name == "secret_access_key" || a.Name == "session_token") && !a.Sensitive {
			t.Errorf("%s is not described, or not sensitive", where)
		}
	})

	for name, test := range map[string]struct {
		config tftest.Config
		says   string
	}{
		"a key alone": {tftest.Config{"access_key_id": "id"}, "[half_access_key]"},
		"spaces": {tftest.Config{"access_key_id": "id", "secret_access_key": "do-not-show "},
			"[empty_credential]"},
		"a key and a profile": {tftest.Config{"access_key_id": "id", "secret_access_key": "do-not-show", "profile": "p"},
			"[profile_with_access_key]"},
		"right":   {tftest.Config{"access_key_id": "id", "secret_access_key": "do-not-show"}, ""},
		"unknown": {tftest.Config{"access_key_id": tftest.Unknown{}, "secret_access_key": tftest.Unknown{}}, ""},
	} {
		config := tftest.Dynamic(t, tftest.ValueOf(t, schemas.Provider.ValueType(), tftest.Config{"s3": test.config}))

		resp, err := tftest.Server(t).ValidateProviderConfig(t.Context(),
			&tfprotov6.ValidateProviderConfigRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}

		diagnostics := tftest.Show(resp.Diagnostics)
		if (diagnostics == "") != (test.says == "") || !strings.Contains(diagnostics, test.says) || strings.Contains(diagnostics, "do-not-show") {
			t.Errorf("%s: %s", name, diagnostics)
		}
	}
}
