package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
)

// restoringFrom asks for a snapshot of a bucket; without a key for nothing.
func restoringFrom(config configuration, key any) configuration {
	return with(config, configuration{"s3": configuration{"bucket": "backups", "key": key, "region": "eu-central-1"}},
		"restore_from")
}

// lostEtcd is a state in which all control planes were seen without their configuration.
func lostEtcd(t *testing.T, state tftypes.Value) tftypes.Value {
	t.Helper()

	for _, machine := range []string{"cp-1", "cp-2", "cp-3"} {
		state = wiped(machine)(t, state)
	}

	return state
}

// restoredBefore is a state in which etcd began with a snapshot of the bucket.
func restoredBefore(key string) func(*testing.T, tftypes.Value) tftypes.Value {
	return func(t *testing.T, state tftypes.Value) tftypes.Value {
		t.Helper()

		state = put(t, state, tftypes.NewAttributePath().WithAttributeName("restored_from"), "s3://backups/"+key)

		return put(t, state, tftypes.NewAttributePath().WithAttributeName("restored_at"), "2026-01-02T04:00:00Z")
	}
}

func restoreScenarios() map[string]planScenario {
	const key, newer = "talos/prod/older.db", "talos/prod/newer.db"

	restored := func() configuration { return restoringFrom(baseCluster(), key) }

	return map[string]planScenario{
		"restore-create": {says: "A cluster is made from a snapshot.", after: restored()},
		"restore-create-from-a-file": {
			says:  "A cluster is made from a file that talosctl wrote.",
			after: with(baseCluster(), "./etcd.snapshot", "restore_from", "file", "path"),
		},
		"restore-create-from-an-unknown-key": {
			says:  "A cluster is made from a snapshot that is known after the apply.",
			after: restoringFrom(baseCluster(), unknownValue{}),
		},
		"restore-lost": {
			says:   "Every control plane lost its data, and a snapshot is to bring it back.",
			before: baseCluster(), after: restored(), since: lostEtcd,
		},
		"restore-lost-unasked-refused": {
			says:   "Every control plane lost its data, and nobody asks for a snapshot.",
			before: baseCluster(), after: baseCluster(), since: lostEtcd,
		},
		"restore-lost-again": {
			says:   "A cluster that was restored lost its data once more, and a newer snapshot is to bring it back.",
			before: restored(), after: restoringFrom(baseCluster(), newer),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return lostEtcd(t, restoredBefore(key)(t, state))
			},
		},
		"restore-lost-same-refused": {
			says:   "A cluster that was restored lost its data once more, and nobody asks for another snapshot.",
			before: restored(), after: restored(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return lostEtcd(t, restoredBefore(key)(t, state))
			},
		},
		"restore-part-lost": {
			says:   "One control plane lost its data: it joins again, and a snapshot is refused.",
			before: baseCluster(), after: restored(), since: wiped("cp-2"),
		},
		"restore-living-refused": {
			says:   "A snapshot is asked for while the cluster lives.",
			before: baseCluster(), after: restored(),
		},
		"restore-changed-refused": {
			says:   "A cluster that was restored lives, and another snapshot is asked for.",
			before: restored(), after: restoringFrom(baseCluster(), newer), since: restoredBefore(key),
		},
		"restore-same": {
			says:   "A cluster that was restored lives, and nothing is asked for that was not done.",
			before: restored(), after: restored(), since: restoredBefore(key),
		},
		"restore-taken-out": {
			says:   "The snapshot is taken out of the configuration after the restore.",
			before: restored(), after: baseCluster(), since: restoredBefore(key),
		},
		"restore-interrupted": {
			says:   "A run that restored the snapshot was killed. The next one goes on.",
			before: baseCluster(), after: restored(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return degraded(t, seen(t, state, "cp-1", "etcd_restored_at", "2026-01-02T04:00:00Z"))
			},
		},
	}
}

// A snapshot whose name says of which cluster it is, is refused for any other, as soon as
// the secrets are known; one that is encrypted needs what opens it.
func TestRestore_refusesASnapshotOfAnotherCluster(t *testing.T) {
	t.Parallel()

	own, err := pki.Parse([]byte(bundleOnce()))
	if err != nil {
		t.Fatal(err)
	}

	key := func(mark, suffix string) string {
		return "talos/prod/etcd-snapshot-2026-01-02T03-00-00Z-" + mark + "-abcdef.db" + suffix
	}

	opened := func(config configuration, name string, value any) configuration {
		return with(config, value, "restore_from", name)
	}

	const (
		atKey      = `AttributeName("restore_from").AttributeName("s3").AttributeName("key")`
		foreign    = "0123456789abcdef"
		identity   = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"
		list       = `AttributeName("restore_from").AttributeName("identities_wo")`
		identities = list + `.ElementKeyInt(0)`
		passphrase = `AttributeName("restore_from").AttributeName("passphrase_wo")`
	)

	for name, test := range map[string]struct {
		config   configuration
		At, says string
	}{
		"of this cluster":    {config: restoringFrom(baseCluster(), key(own.Mark(), ".zst"))},
		"of another":         {restoringFrom(baseCluster(), key(foreign, "")), atKey, "has the mark " + foreign},
		"of unknown secrets": {config: restoringFrom(with(baseCluster(), unknownValue{}, "secrets"), key(foreign, ""))},
		"a sum of something else": {
			opened(restoringFrom(baseCluster(), key(own.Mark(), "")), "sha256", "md5:abc"),
			`AttributeName("restore_from").AttributeName("sha256")`, "64 digits of hexadecimal",
		},
		"a sum": {config: opened(restoringFrom(baseCluster(), key(own.Mark(), "")), "sha256", strings.Repeat("aB", 32))},
		"an empty passphrase": {opened(restoringFrom(baseCluster(), key(own.Mark(), ".age")), "passphrase_wo", ""), passphrase,
			"Found an empty string"},
		"no identity": {opened(restoringFrom(baseCluster(), key(own.Mark(), ".age")), "identities_wo", []any{}), list,
			"Found none"},
		"with an identity": {config: opened(restoringFrom(baseCluster(), key(own.Mark(), ".age")), "identities_wo",
			[]any{identity})},
		"with a file of one": {config: opened(restoringFrom(baseCluster(), key(own.Mark(), ".age")), "identities_wo",
			[]any{"# created: today\n" + identity + "\n"})},
		"with a recipient": {opened(restoringFrom(baseCluster(), key(own.Mark(), ".age")), "identities_wo", []any{"age1abc"}),
			identities, "is the public key"},
		"with a passphrase": {config: opened(restoringFrom(baseCluster(), key(own.Mark(), ".age")), "passphrase_wo",
			"correct horse")},
		"with an unknown one": {config: opened(restoringFrom(baseCluster(), key(own.Mark(), ".age")), "passphrase_wo",
			unknownValue{})},
	} {
		got := validate(t, "talosop_cluster", test.config)

		switch {
		case test.says == "" && len(got) > 0:
			t.Errorf("%s: %s", name, show(got))
		case test.says != "" && (len(got) != 1 || got[0].Attribute.String() != test.At ||
			!strings.Contains(got[0].Detail, test.says)):
			t.Errorf("%s: want %q at %s, got %s", name, test.says, test.At, show(got))
		}
	}

	refused := planned(t, "talosop_control_plane", nil,
		valueOf(t, typeOf(t, "talosop_control_plane"), restoringFrom(baseControlPlane(), key(foreign, ""))))
	if len(refused.Diagnostics) != 1 || refused.Diagnostics[0].Attribute.String() != atKey {
		t.Errorf("a plan of a control plane from the snapshot of another cluster says %s", show(refused.Diagnostics))
	}
}

// An encrypted snapshot needs what opens it in the plan that restores it, and in no later one.
func TestRestore_opensTheSnapshotOnce(t *testing.T) {
	t.Parallel()

	key := "talos/prod/etcd-snapshot-2026-01-02T03-00-00Z-" + markOf(t, bundleOnce()) + "-abcdef.db.age"
	typ := typeOf(t, "talosop_cluster")
	locked := func() configuration { return restoringFrom(baseCluster(), key) }
	lives := restoredBefore(key)(t, settledState(t, "talosop_cluster", baseCluster()))
	lost := lostEtcd(t, settledState(t, "talosop_cluster", baseCluster()))

	for name, test := range map[string]struct {
		state  *tftypes.Value
		config configuration
		needs  bool
	}{
		"a create":              {nil, locked(), true},
		"a create with a key":   {nil, with(locked(), unknownValue{}, "restore_from", "passphrase_wo"), false},
		"a restore":             {&lost, locked(), true},
		"what was restored":     {&lives, locked(), false},
		"what came from others": {nil, restoringFrom(baseCluster(), "talos/prod/older.db"), false},
	} {
		said := show(planned(t, "talosop_cluster", test.state, valueOf(t, typ, test.config)).Diagnostics)
		if strings.Contains(said, "Set identities_wo or passphrase_wo") != test.needs || !test.needs &&
			strings.Contains(said, "ERROR") {
			t.Errorf("%s: %s", name, said)
		}
	}

	// What opens an encrypted one does not get one that is not.
	open := with(restoringFrom(baseCluster(), strings.TrimSuffix(key, ".age")), "correct horse", "restore_from",
		"passphrase_wo")
	if said := show(planned(t, "talosop_cluster", nil, valueOf(t, typ, open)).Diagnostics); !strings.Contains(said,
		"eave out passphrase_wo if this one is meant") {
		t.Errorf("a plain one with a passphrase: %s", said)
	}
}

// The same key on another server is another snapshot, and another way to the same server is
// not.
func TestRestore_sameKeyOnAnotherServer(t *testing.T) {
	t.Parallel()

	const key = "talos/prod/older.db"

	at := func(endpoint string) configuration {
		return with(restoringFrom(baseCluster(), key), endpoint, "restore_from", "s3", "endpoint")
	}
	typ := typeOf(t, "talosop_cluster")
	state := lostEtcd(t, settledState(t, "talosop_cluster", at("https://s3.example.org")))

	for endpoint, restores := range map[string]bool{"https://s3.example.org": false, "https://s3.example.org/": false,
		"https://replica.example.org": true} {
		resp := planned(t, "talosop_cluster", &state, valueOf(t, typ, at(endpoint)))

		value, err := resp.PlannedState.Unmarshal(typ)
		if err != nil {
			t.Fatal(err)
		}

		if got := strings.Contains(attributeOf(t, value, "operations").String(),
			"restore etcd on cp-1 from "+endpoint+"/backups/"+key); got != restores {
			t.Errorf("at %s it is restored: %v, with %s", endpoint, got, attributeOf(t, value, "operations"))
		}
	}
}

// Whoever restores knows where the database in clear text is meanwhile.
func TestRestore_namesItsTemporaryFile(t *testing.T) {
	t.Parallel()

	attribute := restore.Attribute()
	if !strings.Contains(attribute.MarkdownDescription, "`TMPDIR`") {
		t.Errorf("restore_from says %q", attribute.MarkdownDescription)
	}
}

// Exactly one place is given.
func TestRestore_takesExactlyOneSource(t *testing.T) {
	t.Parallel()

	for name, from := range map[string]configuration{
		"none": {}, "two": {"s3": configuration{"bucket": "backups", "key": "a.db"}, "file": configuration{"path": "a.db"}},
	} {
		if got := validate(t, "talosop_cluster", with(baseCluster(), from, "restore_from")); len(got) != 1 ||
			got[0].Summary != "Invalid location: restore_from.s3" {
			t.Errorf("%s: %s", name, show(got))
		}
	}
}

// restoreArguments are all that say which snapshot a cluster begins with.
func restoreArguments() configuration {
	return configuration{
		"s3": configuration{
			"bucket": "backups", "key": "talos/prod/older.db", "endpoint": "https://s3.example.org", "region": "eu-central-1",
			"path_style": true, "checksums": false,
			"insecure_skip_tls_verify": true, "access_key_id_wo": "AKIAEXAMPLE", "secret_access_key_wo": "correct horse battery",
			"session_token_wo": "staple",
			"role":             configuration{"arn": "arn:aws:iam::123456789012:role/backups"},
		},
		"identities_wo": []any{"AGE-SECRET-KEY-1EXAMPLE"}, "passphrase_wo": "correct horse",
		"sha256": strings.Repeat("ab", 32),
	}
}

// isWriteOnly reports whether a path is that of an attribute that no plan has, or in one.
func isWriteOnly(at *tftypes.AttributePath) bool {
	return slices.ContainsFunc(at.Steps(), func(step tftypes.AttributePathStep) bool {
		name, ok := step.(tftypes.AttributeName)

		return ok && strings.HasSuffix(string(name), "_wo")
	})
}

// restoredIn names the snapshot of a configuration.
func restoredIn(t *testing.T, config configuration) string {
	t.Helper()

	from, _ := config["restore_from"].(configuration)

	if s3, ok := from["s3"].(configuration); ok {
		if s3["endpoint"] != nil {
			return fmt.Sprintf("%s/%s/%s", s3["endpoint"], s3["bucket"], s3["key"])
		}

		return fmt.Sprintf("s3://%s/%s", s3["bucket"], s3["key"])
	}

	file, ok := from["file"].(configuration)
	if !ok {
		t.Fatalf("%v names no snapshot", from)
	}

	return fmt.Sprint(file["path"])
}

// What opens and reaches a snapshot is in no plan.
func TestRestore_planHasNoWriteOnlyValues(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]configuration{"talosop_control_plane": fullControlPlane(),
		"talosop_cluster": fullCluster()} {
		err := tftypes.Walk(planOf(t, resource, nil, config), func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
			if isWriteOnly(at) && !v.IsNull() {
				t.Errorf("the plan of %s has %s", resource, at)
			}

			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
