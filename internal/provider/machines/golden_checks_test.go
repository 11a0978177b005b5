package machines_test

import (
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// checked is a configuration with health checks.
func checked(base tftest.Config, url any) tftest.Config {
	return tftest.With(base, tftest.Config{
		"ceph": tftest.Config{"object": tftest.Config{"api_version": "ceph.rook.io/v1", "kind": "CephCluster",
			"namespace": "rook-ceph", "jsonpath": "{.status.ceph.health}", "value": "HEALTH_OK"}},
		"site": tftest.Config{"http": tftest.Config{"url": url}},
	}, "health_checks")
}

// checkedScenarios are plans of changes that wait for health checks.
func checkedScenarios() map[string]planScenario {
	return map[string]planScenario{
		"health-checks-added": {
			says:   "Health checks are added, and nothing else changes.",
			before: tftest.BaseCluster(), after: checked(tftest.BaseCluster(), "https://site.test/healthy"),
		},
		"health-checks-asked": {
			says:   "A file takes a reboot of workers, which waits for health checks; what one of them asks is not known yet.",
			before: tftest.BaseCluster(),
			after: tftest.With(checked(tftest.BaseCluster(), tftest.Unknown{}), []any{aFile}, "workers", "batch",
				"config_patches"),
		},
	}
}
