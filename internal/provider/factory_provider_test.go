package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

func TestProvider_factoryURL(t *testing.T) {
	t.Parallel()

	refused := func(url any) string {
		config := tftest.ValueOf(t, tftest.Schemas(t).Provider.ValueType(), tftest.Config{"factory_url": url})

		resp, err := tftest.Server(t).ValidateProviderConfig(t.Context(),
			&tfprotov6.ValidateProviderConfigRequest{Config: tftest.Dynamic(t, config)})
		tftest.Must(t, err)

		return tftest.Show(resp.Diagnostics)
	}

	for _, url := range []any{"none", "https://factory.example.com", tftest.Unknown{}, nil} {
		if shown := refused(url); shown != "" {
			t.Errorf("%v: %s", url, shown)
		}
	}

	for _, url := range []string{"factory.example.com", "ftp://factory.example.com", "https://alice:secret@example.com"} {
		if shown := refused(url); !strings.Contains(shown, "[invalid_factory_url]") {
			t.Errorf("%s: %s", url, shown)
		}
	}
}
