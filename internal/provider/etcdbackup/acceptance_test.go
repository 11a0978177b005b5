package etcdbackup_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// One cluster and one bucket serve all cases, each with a separate prefix.
func TestAccEtcdBackup_onACluster(t *testing.T) {
	t.Parallel()

	b := newBackups(t, sim.Options{})

	for name, test := range map[string]func(*testing.T, *backups){
		"of its own key":        testBackupOfItsOwnKey,
		"drift":                 testBackupDrift,
		"in place":              testBackupInPlace,
		"schedule":              testBackupSchedule,
		"retain":                testBackupRetain,
		"retain changed":        testBackupRetainChanged,
		"wrong credentials":     testBackupWrongCredentials,
		"a bucket that refuses": testBackupRefused,
		"a member that fails":   testBackupMemberFails,
		"canceled":              testBackupCanceled,
		"destroyed":             testBackupDestroyed,
		"imported":              testBackupImported,
		"a copy imported":       testBackupOfACopyImported,
		"an unreachable bucket": testBackupUnreachable,
		"sweeps":                testBackupSweeps,
		"a slow bucket":         testBackupSlowBucket,
		"swept":                 testBackupSwept,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

// The secret key is in neither state nor answers, and a plan that has it reads the store.
func testBackupOfItsOwnKey(t *testing.T, b *backups) {
	config := b.config(b.Bucket(ownKey), tftest.Config{
		"compression": "zstd", "include_secrets": true, "encryption": tftest.Config{"recipients": []any{testRecipient}},
	})
	config["s3"].(tftest.Config)["prefix"] = "own"

	d := tftest.Drive(t, "talosop_etcd_backup", nil)

	b.ForgetCalls()

	done := d.Apply(t, config).Must(t)
	key := tftest.Text(t, done.Value, "key")

	if name, ok := backup.ParseKey(key); !ok || !strings.HasPrefix(key, "own/test/etcd-snapshot-") ||
		!strings.HasSuffix(key, ".db.zst.age") || name.Mark != tftest.MarkOf(t, b.Bundle) {
		t.Errorf("the key is %s", key)
	}

	record, err := b.Archive(t, "own").Recorded(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"id": "test", "status": "stored", "sha256": record.SHA256, "checksum": record.Checksum, "member": record.Member,
		"talos_version":      "v1.13.0",
		"kubernetes_version": "v1.36.2", "secrets_key": record.Secrets.Key, "kept": "1", "next_due": "",
		"time": record.At.Format(time.RFC3339),
	} {
		if got := tftest.Text(t, done.Value, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	b.expectFollower(t, record.Member)
	b.expectOpens(t, key)

	if strings.Contains(done.Value.String(), storetest.SecretKey) {
		t.Error("the secret key is in state")
	}

	b.Server.Fail(nil)
	before := len(b.Server.Seen(storetest.IsHead))

	d = d.Elsewhere(t, nil)
	d.ExpectEmpty(t, "after the create", config)

	if after := len(b.Server.Seen(storetest.IsHead)); after != before+1 {
		t.Errorf("the store was asked %d times, want once: by the plan, which has the key", after-before)
	}

	if err := b.store(t).Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}

	d.Refresh(t).Must(t)

	if planned := d.Plan(t, config); tftest.Text(t, planned.Value, "key") != "unknown" ||
		!strings.Contains(tftest.Show(planned.Diagnostics), "[backup_lost]") {
		t.Errorf("the plan without the object has the key %s and says %s", tftest.Text(t, planned.Value, "key"),
			tftest.Show(planned.Diagnostics))
	}

	if again := tftest.Text(t, d.Apply(t, config).Must(t).Value, "key"); again == key {
		t.Error("no new snapshot was taken")
	}

	d.ExpectEmpty(t, "after the second snapshot", config)
}

// The refresh detects a change of the object by another client, and a new snapshot repairs it.
func testBackupDrift(t *testing.T, b *backups) {
	config := b.config(b.Bucket(tftest.Config{"prefix": "drift"}), nil)
	handle := maps.Clone(b.Handle)
	config["cluster"], handle["talos_version"] = handle, "v1.13.0"

	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	key := tftest.Text(t, d.Apply(t, config).Must(t).Value, "key")

	d.ExpectEmpty(t, "after the create", config)
	d.ExpectEmpty(t, "after an upgrade of Talos", tftest.With(config, "v1.13.2", "cluster", "talos_version"))

	if err := os.Truncate(filepath.Join(b.Server.Data, key), 1000); err != nil {
		t.Fatal(err)
	}

	for _, status := range []string{"changed", "missing"} {
		read := d.Refresh(t).Must(t)
		if got := tftest.Text(t, read.Value, "status"); got != status ||
			!strings.Contains(tftest.Show(read.Diagnostics), "[backup_lost]") {
			t.Errorf("the status is %s, and the refresh says %s", got, tftest.Show(read.Diagnostics))
		}

		planned := d.Plan(t, config).Must(t)
		if tftest.Text(t, planned.Value, "key") != "unknown" || tftest.Text(t, planned.Value, "status") != "stored" {
			t.Errorf("the plan has the key %s and the status %s", tftest.Text(t, planned.Value, "key"),
				tftest.Text(t, planned.Value, "status"))
		}

		if err := b.store(t).Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}

	d.Apply(t, config).Must(t)
	d.ExpectEmpty(t, "after the new snapshot", config)
}

// Each of these takes a new snapshot without a destroy, and the former one stays.
func testBackupInPlace(t *testing.T, b *backups) {
	bucket := b.Bucket(tftest.Config{"prefix": "in-place"})
	base := tftest.Config{"triggers": tftest.Config{"a": "1"}, "retain": tftest.Config{"count": 10}}
	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	key := tftest.Text(t, d.Apply(t, b.config(bucket, base)).Must(t).Value, "key")

	for _, change := range []tftest.Config{
		{"triggers": tftest.Config{"a": "2"}}, {"triggers": nil}, {"compression": "zstd"},
		{"encryption": tftest.Config{"recipients": []any{testRecipient}}},
		{"include_secrets": true}, {"file": tftest.Config{"path": t.TempDir()}},
	} {
		for name, v := range change {
			base[name] = v
		}

		if base["file"] != nil {
			bucket = nil
		}

		config := b.config(bucket, base)

		after := tftest.Text(t, d.Apply(t, config).Must(t).Value, "key")
		if after == key {
			t.Errorf("%v took no new snapshot", change)
		}

		key = after
	}

	if got := len(b.archiveList(t, "in-place")); got != 6 {
		t.Errorf("%d snapshots are kept, want all 6", got)
	}

	// Arguments about how a snapshot is taken or kept take none.
	for _, change := range []tftest.Config{
		{"retain": tftest.Config{"count": 2}}, {"delete_on_destroy": true}, {"timeouts": tftest.Config{"create": "1h"}},
		{"schedule": "@daily"}, {"compression": "zstd"},
	} {
		for name, v := range change {
			base[name] = v
		}

		if after := tftest.Text(t, d.Apply(t, b.config(nil, base)).Must(t).Value, "key"); after != key {
			t.Errorf("%v took a new snapshot", change)
		}
	}

	d.ExpectEmpty(t, "at the end", b.config(nil, base))
}

// A scheduled time that passed makes one snapshot due, and the next time counts from that.
func testBackupSchedule(t *testing.T, b *backups) {
	// Not during this test, at any time of the day.
	hour := (time.Now().UTC().Hour() + 12) % 24
	config := b.config(nil, tftest.Config{"file": tftest.Config{"path": t.TempDir()},
		"schedule": fmt.Sprintf("0 %d * * *", hour)})
	d := tftest.Drive(t, "talosop_etcd_backup", nil)
	first := d.Apply(t, config).Must(t).Value

	next, err := time.Parse(time.RFC3339, tftest.Text(t, first, "next_due"))
	if err != nil || next.Before(time.Now()) || next.Hour() != hour || time.Until(next) > 24*time.Hour {
		t.Errorf("the next one is due %s (%v)", next, err)
	}

	d.ExpectEmpty(t, "before it is due", config)
	d.Set(t, "next_due", time.Now().Add(-100*time.Hour).UTC().Format(time.RFC3339))

	if status := tftest.Text(t, d.Refresh(t).Must(t).Value, "status"); status != "due" {
		t.Errorf("the status is %s", status)
	}

	if planned := d.Plan(t, config).Must(t); tftest.Text(t, planned.Value, "key") != "unknown" {
		t.Error("no new snapshot is planned")
	}

	second := d.Apply(t, config).Must(t).Value
	if tftest.Text(t, second, "key") == tftest.Text(t, first, "key") || tftest.Text(t, second,
		"next_due") != tftest.Text(t, first, "next_due") {
		t.Errorf("the second snapshot is %s, the next one due %s", tftest.Text(t, second, "key"),
			tftest.Text(t, second, "next_due"))
	}

	d.ExpectEmpty(t, "after it was taken", config)

	// Without a schedule nothing is due.
	d.Set(t, "status", "due")
	delete(config, "schedule")

	third := d.Apply(t, config).Must(t).Value
	if tftest.Text(t, third, "key") != tftest.Text(t, second, "key") || tftest.Text(t, third, "next_due") != "" ||
		tftest.Text(t, third, "status") != "stored" {
		t.Errorf("without a schedule %s was taken, and %s is due", tftest.Text(t, third, "key"),
			tftest.Text(t, third, "next_due"))
	}
}

// Retention deletes the oldest of this cluster, with the files next to them, and nothing else.
func testBackupRetain(t *testing.T, b *backups) {
	s := b.store(t)

	others := []string{
		"retain/test/etcd-snapshot-2020-01-01T00-00-00Z-0011223344556677-aaaaaa.db", "retain/test/notes.txt",
		"retain/test/etcd-snapshot-2020-01-01T00-00-00Z.db",
		"retain/other/etcd-snapshot-2020-01-01T00-00-00Z-" + tftest.MarkOf(t, b.Bundle) + "-aaaaaa.db",
	}
	for _, key := range others {
		if _, err := s.Put(t.Context(), key, strings.NewReader("other")); err != nil {
			t.Fatal(err)
		}
	}

	config := b.config(b.Bucket(tftest.Config{"prefix": "retain"}), tftest.Config{
		"retain": tftest.Config{"count": 2}, "encryption": tftest.Config{"recipients": []any{testRecipient}},
		"include_secrets": true,
	})
	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)

	var taken []string

	for _, run := range []string{"1", "2", "3", "4"} {
		config["triggers"] = tftest.Config{"run": run}
		taken = append(taken, tftest.Text(t, d.Apply(t, config).Must(t).Value, "key"))
	}

	if kept := tftest.Text(t, d.State, "kept"); kept != "2" {
		t.Errorf("%s are kept", kept)
	}

	keys := strings.Join(b.keys(t, "retain/"), " ")

	// For snapshots of the same second, their names decide which are deleted.
	if !strings.Contains(keys, taken[3]) && !strings.Contains(keys, taken[2]) {
		t.Errorf("%s are left of %v", keys, taken)
	}

	if n := len(b.keys(t, "retain/test/")); n != 2*3+3 {
		t.Errorf("%d objects are left: %s", n, keys)
	}

	for _, key := range others {
		if _, err := s.Head(t.Context(), key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A changed retention is applied at once.
func testBackupRetainChanged(t *testing.T, b *backups) {
	config := b.config(b.Bucket(tftest.Config{"prefix": "changed"}), nil)
	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	archive := b.Archive(t, "changed")

	old := backup.Request{At: time.Now().Add(-48 * time.Hour), Source: b.snapshotFrom(t)}
	if _, err := archive.Take(t.Context(), old); err != nil {
		t.Fatal(err)
	}

	key := tftest.Text(t, d.Apply(t, config).Must(t).Value, "key")
	if kept := tftest.Text(t, d.State, "kept"); kept != "2" {
		t.Errorf("%s are kept", kept)
	}

	for _, test := range []struct{ age, kept string }{{"72h", "2"}, {"24h", "1"}} {
		config["retain"] = tftest.Config{"count": 1, "min_age": test.age}

		if got := d.Apply(t, config).Must(t).Value; tftest.Text(t, got, "kept") != test.kept ||
			tftest.Text(t, got, "key") != key {
			t.Errorf("with %s %s are kept, and the key is %s", test.age, tftest.Text(t, got, "kept"), tftest.Text(t, got, "key"))
		}
	}

	b.Server.Fail(func(*http.Request) storetest.Fault { return storetest.Refused })
	defer b.Server.Fail(nil)

	config["retain"] = tftest.Config{"count": 3}

	if done := d.Apply(t, config); !done.Failed() || tftest.Text(t, d.State, "kept") != "1" {
		t.Errorf("a retention that could not be carried out is stored: %s", tftest.Show(done.Diagnostics))
	}
}

func testBackupDestroyed(t *testing.T, b *backups) {
	for _, test := range []struct {
		Prefix   string
		delete   bool
		key      tftest.Config
		provider tftest.Config
		left     bool
		says     string
	}{
		{Prefix: "stays", provider: credentialed, left: true},
		{Prefix: "goes", delete: true, provider: credentialed, says: "[backup_deleted]"},
		{Prefix: "blind", delete: true, key: ownKey, left: true, says: "Set the credentials in `s3` of the provider"},
	} {
		bucket := b.Bucket(test.key)
		bucket["prefix"] = test.Prefix

		d := tftest.Drive(t, "talosop_etcd_backup", test.provider)
		created := d.Apply(t, b.config(bucket, tftest.Config{"delete_on_destroy": test.delete})).Must(t)

		if warned := strings.Contains(tftest.Show(created.Diagnostics),
			"[backup_delete_without_key]"); warned != (test.key != nil) {
			t.Errorf("%s: the plan says %s", test.Prefix, tftest.Show(created.Diagnostics))
		}

		done := d.Apply(t, nil)
		if done.Failed() != (test.left && test.delete) || !strings.Contains(tftest.Show(done.Diagnostics), test.says) {
			t.Errorf("%s: %s", test.Prefix, tftest.Show(done.Diagnostics))
		}

		if left := len(b.keys(t, test.Prefix+"/")) > 0; left != test.left {
			t.Errorf("%s: objects left is %v", test.Prefix, left)
		}
	}
}

// The facts of a snapshot in the resource match those of etcd's own tool, with a real etcd.
func TestAccEtcdBackup_ofRealEtcd(t *testing.T) {
	testenv.BeforeRelease(t, "TestSnapshot_ofARealMember", "TestAccEtcdBackup_onACluster")
	t.Parallel()

	etcdutl := clitest.Asset(t, "etcdutl")
	clitest.Asset(t, "etcd")

	b := newBackups(t, sim.Options{Assets: filepath.Dir(etcdutl), OnlyEtcd: true})
	folder := t.TempDir()
	d := tftest.Drive(t, "talosop_etcd_backup", nil)
	done := d.Apply(t, b.config(nil, tftest.Config{"file": tftest.Config{"path": folder}})).Must(t)

	out, err := exec.CommandContext(t.Context(), etcdutl, "snapshot", "status", "-w", "simple",
		filepath.Join(folder, tftest.Text(t, done.Value, "key"))).Output()
	if err != nil {
		t.Fatal(err)
	}

	// Hash, revision, number of keys, size and version.
	printed := strings.Split(strings.TrimSpace(string(out)), ", ")
	if printed[0] != tftest.Text(t, done.Value, "hash") || printed[1] != tftest.Text(t, done.Value, "revision") {
		t.Errorf("etcdutl says %v, the resource %s and %s", printed, tftest.Text(t, done.Value, "hash"),
			tftest.Text(t, done.Value, "revision"))
	}

	d.ExpectEmpty(t, "after the create", b.config(nil, tftest.Config{"file": tftest.Config{"path": folder}}))
}
