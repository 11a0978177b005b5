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

// hooked is a configuration with hooks.
func hooked(base tftest.Config, before any) tftest.Config {
	return tftest.With(base, tftest.Config{
		"ceph_noout": tftest.Config{"scope": "rollout", "pools": []any{"batch"}, "before": before, "after": before},
		"switchover": tftest.Config{"before": tftest.Config{"http": tftest.Config{"url": "https://site.test/{{node}}"}}},
	}, "hooks")
}

// checkedScenarios are plans of changes that wait for health checks, or run hooks.
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
		"hooks-run": {
			says:   "A file takes a reboot of workers, with hooks around it; what one of them does is not known yet.",
			before: tftest.BaseCluster(),
			after: tftest.With(hooked(tftest.BaseCluster(), tftest.Unknown{}), []any{aFile}, "workers", "batch",
				"config_patches"),
		},
		"hooks-unknown": {
			says:   "A file takes a reboot of workers; the hooks are not known yet.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.With(tftest.BaseCluster(), tftest.Unknown{}, "hooks"), []any{aFile}, "workers", "batch",
				"config_patches"),
		},
	}
}
