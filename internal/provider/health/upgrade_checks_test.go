package health_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// The checks of a cluster that does not answer are incomplete, which is no error. A version that is none is one.
func TestUpgradeChecks_silentClusterIsAResult(t *testing.T) {
	t.Parallel()

	config := tftest.Config{"cluster": tftest.WrittenHandle("10.0.0.1"), "kubernetes_version": "v1.37.0",
		"timeouts": tftest.Config{"read": "200ms"}}

	state, diagnostics := tftest.ReadSilent(t, "talosop_upgrade_checks", config)
	fields := tftest.FieldsOf(t, state)

	if shown := tftest.Show(diagnostics); !fields["complete"].Equal(tftypes.NewValue(tftypes.Bool, false)) ||
		len(diagnostics) != 1 || !strings.Contains(shown, "[parts_silent]") {
		t.Errorf("complete is %s, with %s", fields["complete"], shown)
	}

	var problems []tftypes.Value
	if err := fields["problems"].As(&problems); err != nil || len(problems) > 0 {
		t.Errorf("problems are %s (%v)", fields["problems"], err)
	}
}
