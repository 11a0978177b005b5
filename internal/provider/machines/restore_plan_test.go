package machines_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// lostEtcd is a state in which all control planes were observed without their configuration.
func lostEtcd(t *testing.T, state tftypes.Value) tftypes.Value {
	t.Helper()

	for _, machine := range []string{"cp-1", "cp-2", "cp-3"} {
		state = wiped(machine)(t, state)
	}

	return state
}

// restoredBefore is a state in which etcd started with a snapshot of the bucket.
func restoredBefore(key string) func(*testing.T, tftypes.Value) tftypes.Value {
	return func(t *testing.T, state tftypes.Value) tftypes.Value {
		t.Helper()

		state = tftest.Put(t, state, tftypes.NewAttributePath().WithAttributeName("restored_from"), "s3://backups/"+key)

		return tftest.Put(t, state, tftypes.NewAttributePath().WithAttributeName("restored_at"), "2026-01-02T04:00:00Z")
	}
}

func restoreScenarios() map[string]planScenario {
	const key, newer = "talos/prod/older.db", "talos/prod/newer.db"

	restored := func() tftest.Config { return tftest.RestoringFrom(tftest.BaseCluster(), key) }

	return map[string]planScenario{
		"restore-create": {says: "A cluster is made from a snapshot.", after: restored()},
		"restore-create-from-a-file": {
			says:  "A cluster is made from a file that talosctl wrote.",
			after: tftest.With(tftest.BaseCluster(), "./etcd.snapshot", "restore_from", "file", "path"),
		},
		"restore-create-from-an-unknown-key": {
			says:  "A cluster is made from a snapshot that is known after the apply.",
			after: tftest.RestoringFrom(tftest.BaseCluster(), tftest.Unknown{}),
		},
		"restore-lost": {
			says:   "Every control plane lost its data, and a snapshot is to bring it back.",
			before: tftest.BaseCluster(), after: restored(), since: lostEtcd,
		},
		"restore-lost-unasked-refused": {
			says:   "Every control plane lost its data, and no snapshot is configured.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(), since: lostEtcd,
		},
		"restore-lost-again": {
			says:   "A cluster that was restored lost its data once more, and a newer snapshot is to bring it back.",
			before: restored(), after: tftest.RestoringFrom(tftest.BaseCluster(), newer),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return lostEtcd(t, restoredBefore(key)(t, state))
			},
		},
		"restore-lost-same-refused": {
			says:   "A cluster that was restored lost its data again, and no other snapshot is configured.",
			before: restored(), after: restored(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return lostEtcd(t, restoredBefore(key)(t, state))
			},
		},
		"restore-part-lost": {
			says:   "One control plane lost its data: it joins again, and a snapshot is refused.",
			before: tftest.BaseCluster(), after: restored(), since: wiped("cp-2"),
		},
		"restore-living-refused": {
			says:   "A snapshot is asked for while the cluster lives.",
			before: tftest.BaseCluster(), after: restored(),
		},
		"restore-changed-refused": {
			says:   "A cluster that was restored lives, and another snapshot is asked for.",
			before: restored(), after: tftest.RestoringFrom(tftest.BaseCluster(), newer), since: restoredBefore(key),
		},
		"restore-same": {
			says:   "A cluster that was restored lives, and nothing is asked for that was not done.",
			before: restored(), after: restored(), since: restoredBefore(key),
		},
		"restore-taken-out": {
			says:   "The snapshot is taken out of the configuration after the restore.",
			before: restored(), after: tftest.BaseCluster(), since: restoredBefore(key),
		},
		"restore-interrupted": {
			says:   "A run that restored the snapshot was killed. The next one goes on.",
			before: tftest.BaseCluster(), after: restored(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return degraded(t, seen(t, state, "cp-1", "etcd_restored_at", "2026-01-02T04:00:00Z"))
			},
		},
	}
}

// An encrypted snapshot needs its decryption key in the plan that restores it, and in no later one.
func TestRestore_opensTheSnapshotOnce(t *testing.T) {
	t.Parallel()

	key := "talos/prod/etcd-snapshot-2026-01-02T03-00-00Z-" + tftest.MarkOf(t, tftest.Bundle()) + "-abcdef.db.age"
	typ := tftest.TypeOf(t, "talosop_cluster")
	locked := func() tftest.Config { return tftest.RestoringFrom(tftest.BaseCluster(), key) }
	lives := restoredBefore(key)(t, settledState(t, "talosop_cluster", tftest.BaseCluster()))
	lost := lostEtcd(t, settledState(t, "talosop_cluster", tftest.BaseCluster()))

	for name, test := range map[string]struct {
		state  *tftypes.Value
		config tftest.Config
		needs  bool
	}{
		"a create":              {nil, locked(), true},
		"a create with a key":   {nil, tftest.With(locked(), tftest.Unknown{}, "restore_from", "passphrase_wo"), false},
		"a restore":             {&lost, locked(), true},
		"what was restored":     {&lives, locked(), false},
		"what came from others": {nil, tftest.RestoringFrom(tftest.BaseCluster(), "talos/prod/older.db"), false},
	} {
		diagnostics := tftest.Show(tftest.Plan(t, "talosop_cluster", test.state, tftest.ValueOf(t, typ, test.config)).Diagnostics)
		if strings.Contains(diagnostics, "[snapshot_name_encrypted]") != test.needs || !test.needs &&
			strings.Contains(diagnostics, "ERROR") {
			t.Errorf("%s: %s", name, diagnostics)
		}
	}

	// A decryption key for a snapshot that is not encrypted is refused.
	open := tftest.With(tftest.RestoringFrom(tftest.BaseCluster(), strings.TrimSuffix(key, ".age")), "correct horse",
		"restore_from",
		"passphrase_wo")
	if diagnostics := tftest.Show(tftest.Plan(t, "talosop_cluster", nil,
		tftest.ValueOf(t, typ, open)).Diagnostics); !strings.Contains(diagnostics, "[snapshot_name_not_encrypted]") {
		t.Errorf("a plain one with a passphrase: %s", diagnostics)
	}
}

// The same key on another server is another snapshot, and another address of the same server is not.
func TestRestore_sameKeyOnAnotherServer(t *testing.T) {
	t.Parallel()

	const key = "talos/prod/older.db"

	at := func(endpoint string) tftest.Config {
		return tftest.With(tftest.RestoringFrom(tftest.BaseCluster(), key), endpoint, "restore_from", "s3", "endpoint")
	}
	typ := tftest.TypeOf(t, "talosop_cluster")
	state := lostEtcd(t, settledState(t, "talosop_cluster", at("https://s3.example.org")))

	for endpoint, restores := range map[string]bool{"https://s3.example.org": false, "https://s3.example.org/": false,
		"https://replica.example.org": true} {
		resp := tftest.Plan(t, "talosop_cluster", &state, tftest.ValueOf(t, typ, at(endpoint)))

		value, err := resp.PlannedState.Unmarshal(typ)
		if err != nil {
			t.Fatal(err)
		}

		if got := strings.Contains(tftest.AttributeOf(t, value, "operations").String(),
			"restore etcd on cp-1 from "+endpoint+"/backups/"+key); got != restores {
			t.Errorf("at %s it is restored: %v, with %s", endpoint, got, tftest.AttributeOf(t, value, "operations"))
		}
	}
}

// restoreArguments are all arguments that select a snapshot.
func restoreArguments() tftest.Config {
	return tftest.Config{
		"s3": tftest.Config{
			"bucket": "backups", "key": "talos/prod/older.db", "endpoint": "https://s3.example.org", "region": "eu-central-1",
			"path_style": true, "checksums": false,
			"insecure_skip_tls_verify": true, "access_key_id_wo": "AKIAEXAMPLE", "secret_access_key_wo": "correct horse battery",
			"session_token_wo": "staple",
			"role":             tftest.Config{"arn": "arn:aws:iam::123456789012:role/backups"},
		},
		"identities_wo": []any{"AGE-SECRET-KEY-1EXAMPLE"}, "passphrase_wo": "correct horse",
		"sha256": strings.Repeat("ab", 32),
	}
}

// restoredIn names the snapshot of a configuration.
func restoredIn(t *testing.T, config tftest.Config) string {
	t.Helper()

	from, _ := config["restore_from"].(tftest.Config)

	if s3, ok := from["s3"].(tftest.Config); ok {
		if s3["endpoint"] != nil {
			return fmt.Sprintf("%s/%s/%s", s3["endpoint"], s3["bucket"], s3["key"])
		}

		return fmt.Sprintf("s3://%s/%s", s3["bucket"], s3["key"])
	}

	file, ok := from["file"].(tftest.Config)
	if !ok {
		t.Fatalf("%v names no snapshot", from)
	}

	return fmt.Sprint(file["path"])
}

// No plan contains the write-only values that decrypt and reach a snapshot.
func TestRestore_planHasNoWriteOnlyValues(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]tftest.Config{"talosop_control_plane": fullControlPlane(),
		"talosop_cluster": fullCluster()} {
		err := tftypes.Walk(planOf(t, resource, nil, config), func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
			if tftest.IsWriteOnly(at) && !v.IsNull() {
				t.Errorf("the plan of %s has %s", resource, at)
			}

			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
