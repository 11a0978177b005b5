package provider

// checked is a configuration with health checks.
func checked(base configuration, url any) configuration {
	return with(base, configuration{
		"ceph": configuration{"object": configuration{"api_version": "ceph.rook.io/v1", "kind": "CephCluster",
			"namespace": "rook-ceph", "jsonpath": "{.status.ceph.health}", "value": "HEALTH_OK"}},
		"site": configuration{"http": configuration{"url": url}},
	}, "health_checks")
}

// checkedScenarios are plans of changes that wait for health checks.
func checkedScenarios() map[string]planScenario {
	return map[string]planScenario{
		"health-checks-added": {
			says:   "Health checks are added, and nothing else changes.",
			before: baseCluster(), after: checked(baseCluster(), "https://site.test/healthy"),
		},
		"health-checks-asked": {
			says:   "A file takes a reboot of workers, which waits for health checks; what one of them asks is not known yet.",
			before: baseCluster(),
			after:  with(checked(baseCluster(), unknownValue{}), []any{aFile}, "workers", "batch", "config_patches"),
		},
	}
}
