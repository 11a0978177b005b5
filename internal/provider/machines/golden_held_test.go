package machines_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// locked is a configuration with a locked control plane and a locked worker.
func locked(base tftest.Config) tftest.Config {
	return tftest.With(tftest.With(base, true, "control_plane", "machines", "cp-2", "locked"), true, "workers", "batch",
		"machines",
		"w-1", "locked")
}

// canary is a configuration with a canary pool.
func canary(base tftest.Config, pool any) tftest.Config {
	return tftest.With(base, tftest.Config{"pool": pool, "soak": "20m"}, "upgrade", "canary")
}

// heldScenarios are plans of changes that are held.
func heldScenarios() map[string]planScenario {
	// The thirtieth of February, so that the texts do not depend on the date.
	windowed := func(base tftest.Config, outside any) tftest.Config {
		return tftest.With(base, tftest.Config{"cron": "0 0 30 2 *", "duration": "4h", "outside": outside},
			"maintenance_window")
	}

	return map[string]planScenario{
		"canary": {
			says:   "Talos is upgraded, first in the canary pool.",
			before: canary(olderCluster("v1.12.6"), "batch"), after: canary(olderCluster("v1.13.2"), "batch"),
		},
		"canary-soaks": {
			says:   "The same, after an apply that was killed within the soak.",
			before: canary(olderCluster("v1.12.6"), "batch"), after: canary(olderCluster("v1.13.2"), "batch"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				machines := tftest.Remembered(t, state)
				for _, name := range []string{"batch/w-1", "batch/w-2"} {
					machines.Change(name, func(m *record.Machine) { m.TalosVersion, m.Soaks = "v1.13.2", true })
				}

				return tftest.Remember(t, state, machines)
			},
		},
		"canary-unknown": {
			says:   "The canary pool is not known yet.",
			before: olderCluster("v1.12.6"), after: canary(olderCluster("v1.13.2"), tftest.Unknown{}),
		},
		"window-closed": {
			says:   "A file takes a reboot outside of the maintenance window: the apply waits.",
			before: tftest.BaseCluster(),
			after:  windowed(tftest.With(tftest.BaseCluster(), []any{aFile}, "workers", "batch", "config_patches"), nil),
		},
		"window-closed-live": {
			says:   "A label takes none: no machine waits or is refused.",
			before: tftest.BaseCluster(),
			after: windowed(tftest.With(tftest.BaseCluster(), []any{"machine:\n  nodeLabels:\n    rack: b2"}, "workers", "batch",
				"config_patches"), "refuse"),
		},
		"window-closed-refused": {
			says:   "A file takes a reboot, and plans outside of the maintenance window are refused.",
			before: tftest.BaseCluster(),
			after:  windowed(tftest.With(tftest.BaseCluster(), []any{aFile}, "workers", "batch", "config_patches"), "refuse"),
		},
		"locked": {
			says:   "Machines are locked, and nothing else changes.",
			before: tftest.BaseCluster(), after: locked(tftest.BaseCluster()),
		},
		"locked-upgrade": {
			says:   "Talos goes two minor versions up: locked machines stay, and the others go no further than one beyond them.",
			before: olderCluster("v1.11.3"), after: locked(olderCluster("v1.13.2")),
		},
		"locked-config": {
			says:   "A file takes a reboot, of a locked worker and of another one.",
			before: locked(tftest.BaseCluster()),
			after:  tftest.With(locked(tftest.BaseCluster()), []any{aFile}, "workers", "batch", "config_patches"),
		},
		"locked-since": {
			says:   "Nothing changed, and a locked worker still lacks what an earlier apply held.",
			before: tftest.With(locked(tftest.BaseCluster()), []any{aFile}, "workers", "batch", "config_patches"),
			after:  tftest.With(locked(tftest.BaseCluster()), []any{aFile}, "workers", "batch", "config_patches"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = seen(t, state, "batch/w-1", "config_digest", "the former one")

				return seen(t, state, "batch/w-1", "drift", differsAt(t, "v1alpha1 machine.files[0].content"))
			},
		},
		"locked-since-without-refresh": {
			says:   "The same, before a refresh has compared the configurations.",
			before: tftest.With(locked(tftest.BaseCluster()), []any{aFile}, "workers", "batch", "config_patches"),
			after:  tftest.With(locked(tftest.BaseCluster()), []any{aFile}, "workers", "batch", "config_patches"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, state, "batch/w-1", "config_digest", "the former one")
			},
		},
		"locked-taken-away": {
			says:   "The locks are taken away, and what was held is done.",
			before: locked(olderCluster("v1.12.6")), after: olderCluster("v1.13.2"),
		},
		"locked-removal-refused": {
			says:   "A locked worker is taken out of its pool.",
			before: locked(tftest.BaseCluster()),
			after:  tftest.Without(locked(tftest.BaseCluster()), "workers", "batch", "machines", "w-1"),
		},
		"locked-exchange-refused": {
			says:   "A locked worker is to be other hardware.",
			before: locked(tftest.BaseCluster()),
			after: tftest.With(locked(tftest.BaseCluster()), "4c4c4544-0042-3510-8053-000000000000", "workers", "batch",
				"machines", "w-1",
				"uuid"),
		},
		"locked-destroy-refused": {
			says:   "A cluster with locked machines is destroyed.",
			before: tftest.With(locked(tftest.BaseCluster()), false, "deletion_protection"),
		},
		"locked-destroy-preserving": {
			says: "The same, with machines that are left as they are.",
			before: tftest.With(tftest.With(locked(tftest.BaseCluster()), false, "deletion_protection"), "preserve",
				"on_destroy"),
		},
	}
}
