package etcdbackup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
)

// fullBackup is a configuration with every argument set.
func fullBackup() tftest.Config {
	return tftest.Config{
		"cluster": tftest.Config{
			"name": "prod", "mode": "metal", "endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle(),
			"talos_endpoints": []any{"10.0.0.11", "fd00::12"},
			"talos_version":   "v1.13.0", "kubernetes_version": "v1.36.2", "phase": "Ready",
		},
		"s3": tftest.Config{
			"bucket": "prod-backups", "region": "eu-central-1", "endpoint": "https://s3.example.org:9000",
			"prefix": "talos/backups", "path_style": true,
			"access_key_id_wo": "AKIAIOSFODNN7EXAMPLE", "secret_access_key_wo": "the-secret-key", "session_token_wo": "the-token",
			"role": tftest.Config{"arn": "arn:aws:iam::123456789012:role/backups", "external_id": "e", "session_name": "s",
				"endpoint": "https://sts.example.org"},
			"ca": tftest.Certificate, "insecure_skip_tls_verify": false, "sse": "aws:kms", "kms_key": "alias/backups",
			"object_lock": tftest.Config{"retention": "GOVERNANCE", "days": 30}, "checksums": true, "conditional_writes": false,
		},
		"encryption": tftest.Config{"recipients": []any{testRecipient}}, "compression": "zstd", "include_secrets": true,
		"retain": tftest.Config{"count": 7, "min_age": "168h"}, "triggers": tftest.Config{"version": "v1.36.2"},
		"schedule": "0 3 * * *", "time_zone": "Europe/Berlin",
		"delete_on_destroy": true, "timeouts": tftest.Config{"create": "1h", "read": "10s", "update": "1h", "delete": "1m"},
	}
}

// fileBackup is a minimal backup.
func fileBackup() tftest.Config {
	return tftest.Config{"cluster": fullBackup()["cluster"], "file": tftest.Config{"path": "backups"}}
}

// settledBackup is the state of a backup after an apply of a configuration.
func settledBackup(t *testing.T, config tftest.Config) *tftest.Driven {
	t.Helper()

	d := tftest.Drive(t, "talosop_etcd_backup", nil)
	fields := tftest.FieldsOf(t, d.Proposed(t, tftest.ValueOf(t, tftest.TypeOf(t, d.Name), config)))

	for name, v := range map[string]any{
		"id": "prod", "key": "prod/etcd-snapshot-2026-01-02T03-00-00Z-" + tftest.MarkOf(t, tftest.Bundle()) + "-abcdef.db",
		"status": "stored", "size": 1000,
		"sha256": "aa", "database_size": 900, "revision": 7, "hash": "ab12", "member": "cp-1", "time": "2026-01-02T03:00:00Z",
		"talos_version":      "v1.13.0",
		"kubernetes_version": "v1.36.2", "kept": 3,
	} {
		fields[name] = tftypes.NewValue(fields[name].Type(), v)
	}

	if config["schedule"] != nil {
		fields["next_due"] = tftypes.NewValue(tftypes.String, "2099-01-02T03:00:00Z")
	}

	d.State = tftypes.NewValue(tftest.TypeOf(t, d.Name), fields)

	return d
}

// Every value may be unknown in a plan: it causes no error, no store is asked, and the forecast of the plan is
// correct.
func TestBackup_unknownValues(t *testing.T) {
	t.Parallel()

	config := fullBackup()
	delete(config["s3"].(tftest.Config), "ca")

	created, settled := tftest.Drive(t, "talosop_etcd_backup", nil), settledBackup(t, config)
	full := tftest.ValueOf(t, tftest.TypeOf(t, created.Name), config)

	// With the key in the configuration the plan would ask a server that does not exist.
	settled.Private = []byte(`{"looked":"dHJ1ZQ=="}`)

	for kind, d := range map[string]*tftest.Driven{"create": created, "update": settled} {
		final := d.PlanValue(t, full).Must(t).Value

		tried := tftest.EveryUnknown(t, full, func(at *tftypes.AttributePath, v tftypes.Value) {
			validated, err := d.Server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: d.Name, Config: tftest.Dynamic(t, v),
				ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
			})
			if err != nil || len(validated.Diagnostics) > 0 {
				t.Errorf("validate with unknown %s: %v %s", at, err, tftest.Show(validated.Diagnostics))
			}

			planned := d.PlanValue(t, v).Must(t).Value
			if !tftest.IsWriteOnly(at) {
				tftest.StillUnknown(t, kind, planned, at)
			}

			tftest.KeepsItsWord(t, kind, at, planned, final)
		})

		if tried < 40 {
			t.Errorf("only %d values were tried", tried)
		}
	}
}

// The version shows a change of the passphrase, which no state has.
func TestBackup_versionOfThePassphrase(t *testing.T) {
	t.Parallel()

	sealed := func(version any) tftest.Config {
		return tftest.With(fileBackup(), tftest.Config{"passphrase_wo": "correct horse", "passphrase_wo_version": version},
			"encryption")
	}

	for version, want := range map[string]bool{"1": false, "2": true} {
		d := settledBackup(t, sealed("1"))
		if key := tftest.Text(t, d.Plan(t, sealed(version)).Must(t).Value, "key"); (key == "unknown") != want {
			t.Errorf("version %s: the key is %s", version, key)
		}
	}
}

// A schedule is in its time zone.
func TestBackup_timeZoneOfTheSchedule(t *testing.T) {
	t.Parallel()

	summer := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

	for zone, want := range map[string]string{"": "2026-07-02T03:00:00Z", "Europe/Berlin": "2026-07-02T01:00:00Z"} {
		table, err := timetable.Read("0 3 * * *", zone)
		if got := table.After(summer).Format(time.RFC3339); err != nil || got != want {
			t.Errorf("in %q it is %s, %v", zone, got, err)
		}
	}

	config := fullBackup()
	config["time_zone"] = "Europe/Nowhere"

	if diagnostics := tftest.Show(tftest.Validate(t, "talosop_etcd_backup", config)); !strings.Contains(diagnostics, "IANA") {
		t.Errorf("a zone that is none: %s", diagnostics)
	}
}

// A change elsewhere in the cluster does not change the backup, even while it is in progress.
func TestBackup_whileTheClusterChanges(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(handle tftest.Config){
		"another version":     func(handle tftest.Config) { handle["kubernetes_version"] = "v1.36.3" },
		"an unfinished phase": func(handle tftest.Config) { handle["phase"] = tftest.Unknown{} },
		"another endpoint":    func(handle tftest.Config) { handle["talos_endpoints"] = []any{"10.0.0.13"} },
	} {
		d := settledBackup(t, fileBackup())
		after := fileBackup()
		change(after["cluster"].(tftest.Config))

		planned := d.Plan(t, after).Must(t).Value
		if key := tftest.Text(t, planned, "key"); key != tftest.Text(t, d.State, "key") {
			t.Errorf("%s: the key is %s", name, key)
		}
	}

	for name, change := range map[string]func(handle tftest.Config){
		"another name":    func(handle tftest.Config) { handle["name"] = "prod-2" },
		"unknown secrets": func(handle tftest.Config) { handle["secrets"] = tftest.Unknown{} },
	} {
		d := settledBackup(t, fileBackup())
		after := fileBackup()
		change(after["cluster"].(tftest.Config))

		if key := tftest.Text(t, d.Plan(t, after).Must(t).Value, "key"); key != "unknown" {
			t.Errorf("%s: the key is %s", name, key)
		}
	}
}

// The plan that makes snapshots clear text warns of it, and later plans do not.
func TestBackup_inClearText(t *testing.T) {
	t.Parallel()

	encrypted := fileBackup()
	encrypted["encryption"] = tftest.Config{"recipients": []any{testRecipient}}

	for name, test := range map[string]struct {
		of    *tftest.Driven
		To    tftest.Config
		warns bool
	}{
		"a new one":           {tftest.Drive(t, "talosop_etcd_backup", nil), fileBackup(), true},
		"a new encrypted one": {tftest.Drive(t, "talosop_etcd_backup", nil), encrypted, false},
		"as before":           {settledBackup(t, fileBackup()), tftest.With(fileBackup(), "zstd", "compression"), false},
		"not any more":        {settledBackup(t, encrypted), fileBackup(), true},
	} {
		diagnostics := tftest.Show(test.of.Plan(t, test.To).Must(t).Diagnostics)
		if strings.Contains(diagnostics, "[backup_not_encrypted]") != test.warns || strings.Count(diagnostics, "WARNING") > 1 {
			t.Errorf("%s: %s", name, diagnostics)
		}
	}
}

// Mistakes are reported at their attributes, without possible secrets.
func TestBackup_invalidConfiguration(t *testing.T) {
	t.Parallel()

	const secret = "do-not-show-this"

	for name, test := range map[string]struct {
		change func(c tftest.Config)
		At     string
		says   []string
	}{
		"no place": {func(c tftest.Config) { delete(c, "s3") }, "s3", []string{"[backup_location]", "neither"}},
		"two places": {func(c tftest.Config) { c["file"] = tftest.Config{"path": "."} }, "s3",
			[]string{"[backup_location]", "both"}},
		"a URL for a bucket": {inBucket("bucket", "s3://prod"), "bucket", []string{`"s3://prod"`}},
		"upper case": {func(c tftest.Config) { inBucket("endpoint", nil)(c); inBucket("bucket", "Prod")(c) },
			"bucket", []string{"[invalid_bucket_name]", `"Prod"`, "3 to 63"}},
		"a slash before":  {inBucket("prefix", "/talos"), "prefix", []string{"[s3_key_with_empty_part]", `"/talos"`}},
		"a slash behind":  {inBucket("prefix", "talos/"), "prefix", []string{`"talos/"`}},
		"an empty prefix": {inBucket("prefix", ""), "prefix", []string{"an empty string"}},
		"a dot segment":   {inBucket("prefix", "talos/../x"), "prefix", []string{"[s3_key_with_dots]"}},
		"no URL":          {inBucket("endpoint", "minio:9000"), "endpoint", []string{"[invalid_s3_endpoint]"}},
		"a password":      {inBucket("endpoint", "https://me:"+secret+"@minio"), "endpoint", []string{"[s3_endpoint_with_user]"}},
		"no certificate":  {inBucket("ca", secret), "ca", []string{"[invalid_s3_ca]", "no certificate"}},
		"a key for a CA": {inBucket("ca", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "ca",
			[]string{"private key"}},
		"an unknown sse":    {inBucket("sse", "AES"), "sse", []string{"[invalid_sse]", `"AES"`}},
		"a key without kms": {inBucket("sse", "AES256"), "kms_key", []string{"[kms_key_without_sse]"}},
		"a lock": {inBucket("object_lock", tftest.Config{"retention": "NONE", "days": 1}), "retention",
			[]string{"[invalid_lock_retention]", `"NONE"`}},
		"a lock of no day": {inBucket("object_lock", tftest.Config{"retention": "GOVERNANCE", "days": 0}), "days",
			[]string{"[invalid_lock_days]", "Found 0"}},
		"a lock without checksums": {inBucket("checksums", false), "checksums",
			[]string{"[object_lock_without_checksums]"}},
		"a key without id":    {inBucket("access_key_id_wo", nil), "secret_access_key_wo", []string{"[half_access_key]", "access_key_id_wo"}},
		"a key and a profile": {inBucket("profile", "p"), "profile", []string{"[profile_with_access_key]"}},
		"a token alone": {
			func(c tftest.Config) { inBucket("access_key_id_wo", nil)(c); inBucket("secret_access_key_wo", nil)(c) },
			"session_token_wo",
			[]string{"[session_token_without_key]"},
		},
		"no role": {inBucket("role", tftest.Config{"arn": "backups"}), "arn", []string{"[invalid_role_arn]", `"backups"`}},
		"no key of age": {func(c tftest.Config) { c["encryption"] = tftest.Config{"recipients": []any{secret}} },
			"recipients", []string{"[invalid_recipient]", "recipients[0]"}},
		"the second": {func(c tftest.Config) {
			c["encryption"] = tftest.Config{"recipients": []any{testRecipient, "ssh-ed25519 A"}}
		}, "recipients", []string{"recipients[1]"}},
		"no key at all": {func(c tftest.Config) { c["encryption"] = tftest.Config{} }, "encryption",
			[]string{"[backup_encryption]", "neither"}},
		"a secret key of age": {func(c tftest.Config) { c["encryption"] = tftest.Config{"recipients": []any{testIdentity}} },
			"recipients", []string{"[invalid_recipient]"}},
		"no recipient": {func(c tftest.Config) { c["encryption"] = tftest.Config{"recipients": []any{}} },
			"recipients", []string{"[no_recipients]"}},
		"two keys": {
			func(c tftest.Config) {
				c["encryption"] = tftest.Config{"recipients": []any{testRecipient}, "passphrase_wo": secret}
			}, "encryption",
			[]string{"[backup_encryption]", "both"},
		},
		"clear secrets": {func(c tftest.Config) { delete(c, "encryption") }, "include_secrets",
			[]string{"[include_secrets_without_encryption]"}},
		"keep nothing": {func(c tftest.Config) { c["retain"] = tftest.Config{"count": 0} }, "count",
			[]string{"[invalid_retain_count]", "Found 0"}},
		"a negative age": {func(c tftest.Config) { c["retain"] = tftest.Config{"count": 1, "min_age": "-1h"} },
			"min_age", []string{"[invalid_min_age]", `"-1h"`}},
		"an age in days": {func(c tftest.Config) { c["retain"] = tftest.Config{"count": 3, "min_age": "7d"} }, "min_age",
			[]string{`Found "7d"`, "168h"}},
		"four fields": {func(c tftest.Config) { c["schedule"] = "0 3 * *" }, "schedule",
			[]string{`"0 3 * *": expected exactly 5 fields, found 4. `, "@every"}},
		"a time zone": {func(c tftest.Config) { c["schedule"] = "TZ=Europe/Berlin 0 3 * * *" }, "schedule",
			[]string{"time zone", "time_zone"}},
		"the 30th February": {func(c tftest.Config) { c["schedule"] = "0 3 30 2 *" }, "schedule",
			[]string{"names no time"}},
		"no control plane": {func(c tftest.Config) { delete(c["cluster"].(tftest.Config), "talos_endpoints") },
			"talos_endpoints", []string{"[backup_without_endpoints]"}},
		"a path for a name": {func(c tftest.Config) { c["cluster"].(tftest.Config)["name"] = "a/b" }, "name",
			[]string{"[backup_cluster_name]", `"a/b"`}},
		"a compression": {func(c tftest.Config) { c["compression"] = "gzip" }, "compression", []string{"gzip"}},
		"a folder of no name": {func(c tftest.Config) { delete(c, "s3"); c["file"] = tftest.Config{"path": ""} }, "path",
			[]string{"an empty string"}},
	} {
		config := fullBackup()
		delete(config["s3"].(tftest.Config), "ca")
		test.change(config)

		got := tftest.Validate(t, "talosop_etcd_backup", config)
		if len(got) != 1 || !strings.Contains(got[0].Attribute.String(), test.At) {
			t.Errorf("%s: %s", name, tftest.Show(got))

			continue
		}

		for _, words := range test.says {
			if !strings.Contains(tftest.Show(got), words) {
				t.Errorf("%s does not say %q: %s", name, words, tftest.Show(got))
			}
		}

		if strings.Contains(tftest.Show(got), secret) || strings.Contains(tftest.Show(got), testIdentity) {
			t.Errorf("%s shows a secret: %s", name, tftest.Show(got))
		}
	}

	for name, config := range map[string]tftest.Config{"full": fullBackup(), "file": fileBackup()} {
		if name == "full" {
			delete(config["s3"].(tftest.Config), "ca")
		}

		if got := tftest.Validate(t, "talosop_etcd_backup", config); len(got) > 0 {
			t.Errorf("%s: %s", name, tftest.Show(got))
		}
	}
}

// inBucket sets an attribute of s3.
func inBucket(name string, value any) func(tftest.Config) {
	return func(c tftest.Config) { c["s3"].(tftest.Config)[name] = value }
}

// Snapshots come from healthy members, from the leader last, and from a full one when there is no other.
func TestSources_followersFirst(t *testing.T) {
	t.Parallel()

	want := cluster.Spec{Machines: []cluster.Machine{
		cluster.MachineAt("10.0.0.11", step.ControlPlane, "10.0.0.11"),
		cluster.MachineAt("10.0.0.12", step.ControlPlane, "10.0.0.12"),
	}}
	view := func(id string, alarms ...string) etcdstate.View {
		return etcdstate.View{Member: id, Leader: "1", Members: []string{"1", "2", "3", "4", "5"}, Alarms: alarms}
	}
	member := func(id, name string) etcdstate.Member {
		return etcdstate.Member{ID: id, Name: name, PeerURLs: []string{"https://10.0.1.1" + id + ":2380"}}
	}
	learner := member("5", "cp-5")
	learner.Learner = true

	have := cluster.Snapshot{
		Time: time.Now(),
		Machines: map[string]step.MachineState{
			"10.0.0.11": {Access: step.Member, MemberID: "1", TalosVersion: "v1.13.0"},
			"10.0.0.12": {Access: step.Member, MemberID: "2", TalosVersion: "v1.13.1"},
		},
		Peers: map[string]step.MachineState{"3": {Access: step.Member, MemberID: "3", TalosVersion: "v1.13.2"}},
		Etcd: etcdstate.State{
			Known: true, Members: []etcdstate.Member{member("1", "cp-1"), member("2", "cp-2"), member("3", "cp-3"),
				member("4", "cp-4"), learner},
			Views: map[string]etcdstate.View{"1": view("1", "NOSPACE on 4"), "2": view("2"), "3": view("3"),
				"4": view("4", "NOSPACE on 4"), "5": view("5")},
		},
	}

	sources, problems := etcdbackup.SourcesIn(want, have)

	expected := []etcdbackup.Source{
		{Name: "cp-2", Address: "10.0.0.12", TalosVersion: "v1.13.1"},
		{Name: "cp-3", Address: "10.0.1.13", TalosVersion: "v1.13.2"},
		{Name: "cp-1", Address: "10.0.0.11", TalosVersion: "v1.13.0", Leader: true},
		{Name: "cp-4", Address: "10.0.1.14", Full: true},
	}
	if !slices.Equal(sources, expected) {
		t.Errorf("sources are %+v", sources)
	}

	if len(problems) != 2 || !strings.Contains(problems[0].Error(), "cp-4: it is not healthy: raised the alarm NOSPACE") ||
		!strings.Contains(problems[1].Error(), "learner") {
		t.Errorf("problems are %v", problems)
	}

	have.Etcd.Views["4"] = view("4", "CORRUPT on 4", "NOSPACE on 4")

	if sources, _ := etcdbackup.SourcesIn(want, have); !slices.Equal(sources, expected[:3]) {
		t.Errorf("with a corrupt one sources are %+v", sources)
	}

	if sources, problems := etcdbackup.SourcesIn(want, cluster.Snapshot{}); len(sources) != 0 || len(problems) != 1 {
		t.Errorf("without an answer there are %v, and the problems %v", sources, problems)
	}
}
