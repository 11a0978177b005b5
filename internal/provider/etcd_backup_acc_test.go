package provider

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/talossim"
)

// Keys of age that were made for these tests.
const (
	testRecipient = "age1s5x045tarsnxr3ee073t7hez7nlcx2paavfpn6lp5yqqtag4xqaswvqhvf"
	testIdentity  = "AGE-SECRET-KEY-1MCCSGQL7D0LTDU3898EHPV2DHFJYHFPUGUH4EN63CYXAX00NU9CSQKTN4Q"
)

// backups is a cluster with three control planes, and a bucket.
type backups struct {
	*site

	server *storetest.Server
	handle map[string]any
	bundle string
}

// newBackups makes the cluster as a CLI would.
func newBackups(t *testing.T, opts talossim.Options) *backups {
	t.Helper()

	b := &backups{site: newSiteWith(t, opts, 3, 0), server: storetest.New(t), bundle: bundleOnce()}

	machines := configuration{}
	for _, m := range b.controlPlane {
		machines[m.Name()] = configuration{"address": m.Address().String()}
	}

	config := baseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"], config["machines"] = "test", b.endpoint, "v1.36.2", machines
	config["deletion_protection"] = false

	plane := drive(t, "talosop_control_plane", nil)
	if phase := text(t, plane.apply(t, config).must(t).value, "phase"); phase != "Ready" {
		t.Fatalf("the cluster is %s", phase)
	}

	b.handle = configuration{
		"name": "test", "endpoint": b.endpoint, "secrets": b.bundle, "kubernetes_version": "v1.36.2",
		"talos_endpoints": []any{b.controlPlane[0].Address().String(), b.controlPlane[1].Address().String(), b.controlPlane[2].Address().String()},
	}

	return b
}

// bucket is `s3` without credentials; more is further attributes.
func (b *backups) bucket(more configuration) configuration {
	out := configuration{"bucket": storetest.Bucket, "endpoint": b.server.Proxy.URL, "ca": b.server.CA}
	for name, v := range more {
		out[name] = v
	}

	return out
}

var ownKey = configuration{"access_key_id": storetest.AccessKey, "secret_access_key": storetest.SecretKey}

// credentialed is a configuration of the provider with the key of the bucket.
var credentialed = configuration{"s3": configuration{"access_key_id": storetest.AccessKey, "secret_access_key": storetest.SecretKey}}

// config is a backup; more is further attributes.
func (b *backups) config(bucket configuration, more configuration) configuration {
	out := configuration{"cluster": b.handle}
	if bucket != nil {
		out["s3"] = bucket
	}

	for name, v := range more {
		out[name] = v
	}

	return out
}

// store is the bucket itself.
func (b *backups) store(t *testing.T) *s3.Store {
	t.Helper()

	s, err := s3.New(t.Context(), b.server.Config())
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// keys are those of all objects below a prefix.
func (b *backups) keys(t *testing.T, prefix string) []string {
	t.Helper()

	objects, err := b.store(t).List(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}

	var keys []string
	for _, o := range objects {
		keys = append(keys, o.Key)
	}

	return keys
}

// expectNothing checks that a prefix has neither objects nor parts of any.
func (b *backups) expectNothing(t *testing.T, prefix string) {
	t.Helper()

	if keys := b.keys(t, prefix); len(keys) > 0 {
		t.Errorf("%s holds %v", prefix, keys)
	}

	if n, err := b.store(t).Sweep(t.Context(), prefix, everything); n > 0 || err != nil {
		t.Errorf("%s has %d uploads that were not ended (%v)", prefix, n, err)
	}
}

func everything(string, time.Time) bool { return true }

// archive is the snapshots of the cluster below a prefix.
func (b *backups) archive(t *testing.T, prefix string) backup.Archive {
	t.Helper()

	return backup.Archive{Store: b.store(t), Prefix: prefix, Cluster: "test", Mark: markOf(t, b.bundle)}
}

// leader is the name of the member that leads.
func (b *backups) leader(t *testing.T) string {
	t.Helper()

	const name = "talosop_etcd_members"

	typ := schemas(t).DataSourceSchemas[name].ValueType()

	resp, err := serving(t, nil).ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
		TypeName: name, Config: dynamic(t, valueOf(t, typ, configuration{"cluster": b.handle})),
	})
	if err != nil {
		t.Fatal(err)
	}

	members, _ := plain(t, fieldsOf(t, decoded(t, typ, resp.State))["members"]).([]any)
	for _, m := range members {
		if member, _ := m.(configuration); member["leader"] == true {
			return member["name"].(string)
		}
	}

	t.Fatalf("no member leads: %s", show(resp.Diagnostics))

	return ""
}

// One cluster and one bucket serve all cases, each below a prefix of its own.
func TestAccEtcdBackup(t *testing.T) {
	t.Parallel()

	b := newBackups(t, talossim.Options{})

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
		"cancelled":             testBackupCancelled,
		"destroyed":             testBackupDestroyed,
		"imported":              testBackupImported,
		"an unreachable bucket": testBackupUnreachable,
		"sweeps":                testBackupSweeps,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

// The secret key is in neither state nor answers, and a plan that has it looks at the store.
func testBackupOfItsOwnKey(t *testing.T, b *backups) {
	config := b.config(b.bucket(ownKey), configuration{
		"compression": "zstd", "include_secrets": true, "encryption": configuration{"recipients": []any{testRecipient}},
	})
	config["s3"].(configuration)["prefix"] = "own"

	d := drive(t, "talosop_etcd_backup", nil)

	b.ForgetCalls()

	done := d.apply(t, config).must(t)
	key := text(t, done.value, "key")

	if name, ok := backup.ParseKey(key); !ok || !strings.HasPrefix(key, "own/test/etcd-snapshot-") || !strings.HasSuffix(key, ".db.zst.age") || name.Mark != markOf(t, b.bundle) {
		t.Errorf("the key is %s", key)
	}

	record, err := b.archive(t, "own").Recorded(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"id": "test", "status": "stored", "sha256": record.SHA256, "checksum": record.Checksum, "member": record.Member, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "secrets_key": record.Secrets.Key, "kept": "1", "next_due": "", "time": record.At.Format(time.RFC3339),
	} {
		if got := text(t, done.value, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	b.expectFollower(t, record.Member)
	b.expectOpens(t, key)

	if strings.Contains(done.value.String(), storetest.SecretKey) {
		t.Error("the secret key is in state")
	}

	b.server.Fail(nil)
	before := len(b.server.Seen(storetest.IsHead))

	d = d.elsewhere(t, nil)
	d.expectEmpty(t, "after the create", config)

	if after := len(b.server.Seen(storetest.IsHead)); after != before+1 {
		t.Errorf("the store was asked %d times, want once: by the plan, which has the key", after-before)
	}

	if err := b.store(t).Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}

	d.refresh(t).must(t)

	if planned := d.plan(t, config); text(t, planned.value, "key") != "unknown" || !strings.Contains(show(planned.diagnostics), "A backup is missing") {
		t.Errorf("the plan without the object has the key %s and says %s", text(t, planned.value, "key"), show(planned.diagnostics))
	}

	if again := text(t, d.apply(t, config).must(t).value, "key"); again == key {
		t.Error("no new snapshot was taken")
	}

	d.expectEmpty(t, "after the second snapshot", config)
}

// expectFollower checks who gave the snapshot.
func (b *backups) expectFollower(t *testing.T, member string) {
	t.Helper()

	calls := b.CallsTo("EtcdSnapshot")
	if len(calls) != 1 || b.Machine(calls[0].Machine).Hostname() != member {
		t.Errorf("snapshots were taken with %v, want one from %s", calls, member)
	}

	if leader := b.leader(t); member == leader {
		t.Errorf("the leader, %s, gave the snapshot", leader)
	}
}

// expectOpens checks that a stored snapshot, and what lies beside it, can be had back.
func (b *backups) expectOpens(t *testing.T, key string) {
	t.Helper()

	keys := backup.Keys{Identities: []string{testIdentity}}

	snapshot, err := b.archive(t, "own").Fetch(t.Context(), key, keys)
	if err != nil {
		t.Fatal(err)
	}

	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}

	secrets, err := b.archive(t, "own").Secrets(t.Context(), key, keys)
	if err != nil || !strings.Contains(string(secrets), b.bundle) || !strings.Contains(string(secrets), `# talos_version: "v1.13.0"`) {
		t.Errorf("the secrets cannot be had back: %v", err)
	}
}

// What somebody did to the object is seen by the refresh, and mended by a new snapshot.
func testBackupDrift(t *testing.T, b *backups) {
	config := b.config(b.bucket(configuration{"prefix": "drift"}), nil)
	d := drive(t, "talosop_etcd_backup", credentialed)
	key := text(t, d.apply(t, config).must(t).value, "key")

	d.expectEmpty(t, "after the create", config)

	if err := os.Truncate(filepath.Join(b.server.Data, key), 1000); err != nil {
		t.Fatal(err)
	}

	for _, status := range []string{"changed", "missing"} {
		read := d.refresh(t).must(t)
		if got := text(t, read.value, "status"); got != status || !strings.Contains(show(read.diagnostics), "A backup is "+status) {
			t.Errorf("the status is %s, and the refresh says %s", got, show(read.diagnostics))
		}

		planned := d.plan(t, config).must(t)
		if text(t, planned.value, "key") != "unknown" || text(t, planned.value, "status") != "stored" {
			t.Errorf("the plan has the key %s and the status %s", text(t, planned.value, "key"), text(t, planned.value, "status"))
		}

		if err := b.store(t).Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}

	d.apply(t, config).must(t)
	d.expectEmpty(t, "after the new snapshot", config)
}

// Each of these takes a new snapshot without a destroy, and the former one stays.
func testBackupInPlace(t *testing.T, b *backups) {
	bucket := b.bucket(configuration{"prefix": "in-place"})
	base := configuration{"triggers": configuration{"a": "1"}, "retain": configuration{"count": 10}}
	d := drive(t, "talosop_etcd_backup", credentialed)
	key := text(t, d.apply(t, b.config(bucket, base)).must(t).value, "key")

	for _, change := range []configuration{
		{"triggers": configuration{"a": "2"}}, {"triggers": nil}, {"compression": "zstd"}, {"encryption": configuration{"recipients": []any{testRecipient}}},
		{"include_secrets": true}, {"file": configuration{"path": t.TempDir()}},
	} {
		for name, v := range change {
			base[name] = v
		}

		if base["file"] != nil {
			bucket = nil
		}

		config := b.config(bucket, base)

		after := text(t, d.apply(t, config).must(t).value, "key")
		if after == key {
			t.Errorf("%v took no new snapshot", change)
		}

		key = after
	}

	if got := len(b.archiveList(t, "in-place")); got != 6 {
		t.Errorf("%d snapshots are kept, want all 6", got)
	}

	// What only says how, or what becomes of it, takes none.
	for _, change := range []configuration{
		{"retain": configuration{"count": 2}}, {"delete_on_destroy": true}, {"timeouts": configuration{"create": "1h"}}, {"schedule": "@daily"}, {"compression": "zstd"},
	} {
		for name, v := range change {
			base[name] = v
		}

		if after := text(t, d.apply(t, b.config(nil, base)).must(t).value, "key"); after != key {
			t.Errorf("%v took a new snapshot", change)
		}
	}

	d.expectEmpty(t, "at the end", b.config(nil, base))
}

func (b *backups) archiveList(t *testing.T, prefix string) []backup.Entry {
	t.Helper()

	entries, err := b.archive(t, prefix).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return entries
}

// A time that passed makes one snapshot due, and the one after it counts from that.
func testBackupSchedule(t *testing.T, b *backups) {
	config := b.config(nil, configuration{"file": configuration{"path": t.TempDir()}, "schedule": "0 3 * * *"})
	d := drive(t, "talosop_etcd_backup", nil)
	first := d.apply(t, config).must(t).value

	next, err := time.Parse(time.RFC3339, text(t, first, "next_due"))
	if err != nil || next.Before(time.Now()) || next.Hour() != 3 || time.Until(next) > 24*time.Hour {
		t.Errorf("the next one is due %s (%v)", next, err)
	}

	d.expectEmpty(t, "before it is due", config)
	d.with(t, "next_due", time.Now().Add(-100*time.Hour).UTC().Format(time.RFC3339))

	if status := text(t, d.refresh(t).must(t).value, "status"); status != "due" {
		t.Errorf("the status is %s", status)
	}

	if planned := d.plan(t, config).must(t); text(t, planned.value, "key") != "unknown" {
		t.Error("no new snapshot is planned")
	}

	second := d.apply(t, config).must(t).value
	if text(t, second, "key") == text(t, first, "key") || text(t, second, "next_due") != text(t, first, "next_due") {
		t.Errorf("the second snapshot is %s, the next one due %s", text(t, second, "key"), text(t, second, "next_due"))
	}

	d.expectEmpty(t, "after it was taken", config)

	// Without a schedule nothing is due.
	d.with(t, "status", "due")
	delete(config, "schedule")

	third := d.apply(t, config).must(t).value
	if text(t, third, "key") != text(t, second, "key") || text(t, third, "next_due") != "" || text(t, third, "status") != "stored" {
		t.Errorf("without a schedule %s was taken, and %s is due", text(t, third, "key"), text(t, third, "next_due"))
	}
}

// Retention takes the oldest of this cluster, with what lies beside them, and nothing else.
func testBackupRetain(t *testing.T, b *backups) {
	s := b.store(t)

	others := []string{
		"retain/test/etcd-snapshot-2020-01-01T00-00-00Z-0011223344556677-aaaaaa.db", "retain/test/notes.txt",
		"retain/test/etcd-snapshot-2020-01-01T00-00-00Z.db", "retain/other/etcd-snapshot-2020-01-01T00-00-00Z-" + markOf(t, b.bundle) + "-aaaaaa.db",
	}
	for _, key := range others {
		if _, err := s.Put(t.Context(), key, strings.NewReader("other")); err != nil {
			t.Fatal(err)
		}
	}

	config := b.config(b.bucket(configuration{"prefix": "retain"}), configuration{
		"retain": configuration{"count": 2}, "encryption": configuration{"recipients": []any{testRecipient}}, "include_secrets": true,
	})
	d := drive(t, "talosop_etcd_backup", credentialed)

	var taken []string

	for _, run := range []string{"1", "2", "3", "4"} {
		config["triggers"] = configuration{"run": run}
		taken = append(taken, text(t, d.apply(t, config).must(t).value, "key"))
	}

	if kept := text(t, d.state, "kept"); kept != "2" {
		t.Errorf("%s are kept", kept)
	}

	keys := strings.Join(b.keys(t, "retain/"), " ")

	// Of snapshots of one second it is their names that decide which go.
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

// A changed retention is carried out at once.
func testBackupRetainChanged(t *testing.T, b *backups) {
	config := b.config(b.bucket(configuration{"prefix": "changed"}), nil)
	d := drive(t, "talosop_etcd_backup", credentialed)
	archive := b.archive(t, "changed")

	old := backup.Request{At: time.Now().Add(-48 * time.Hour), Source: b.snapshotFrom(t)}
	if _, err := archive.Take(t.Context(), old); err != nil {
		t.Fatal(err)
	}

	key := text(t, d.apply(t, config).must(t).value, "key")
	if kept := text(t, d.state, "kept"); kept != "2" {
		t.Errorf("%s are kept", kept)
	}

	for _, test := range []struct{ age, kept string }{{"72h", "2"}, {"24h", "1"}} {
		config["retain"] = configuration{"count": 1, "min_age": test.age}

		if got := d.apply(t, config).must(t).value; text(t, got, "kept") != test.kept || text(t, got, "key") != key {
			t.Errorf("with %s %s are kept, and the key is %s", test.age, text(t, got, "kept"), text(t, got, "key"))
		}
	}

	b.server.Fail(func(*http.Request) storetest.Fault { return storetest.Refused })
	defer b.server.Fail(nil)

	config["retain"] = configuration{"count": 3}

	if done := d.apply(t, config); !done.failed() || text(t, d.state, "kept") != "1" {
		t.Errorf("a retention that could not be carried out is stored: %s", show(done.diagnostics))
	}
}

// Nothing is recorded that was not stored.
func testBackupWrongCredentials(t *testing.T, b *backups) {
	const wrong = "not-the-secret-of-the-bucket"

	for name, bucket := range map[string]configuration{
		"a wrong key": {"access_key_id": storetest.AccessKey, "secret_access_key": wrong}, "an unknown key": {"access_key_id": "nobody", "secret_access_key": wrong},
		"no such bucket": {"bucket": "missing", "access_key_id": storetest.AccessKey, "secret_access_key": storetest.SecretKey},
	} {
		d := drive(t, "talosop_etcd_backup", nil)
		bucket["prefix"] = "wrong"

		done := d.apply(t, b.config(b.bucket(bucket), nil))
		said := show(done.diagnostics)

		if !done.failed() || !d.state.IsNull() {
			t.Errorf("%s: the state is %v", name, d.state)
		}

		if strings.Contains(said, wrong) || strings.Contains(said, storetest.SecretKey) || !strings.Contains(said, "Applying again is safe") {
			t.Errorf("%s: %s", name, said)
		}
	}

	b.expectNothing(t, "wrong/")
}

func testBackupRefused(t *testing.T, b *backups) {
	b.server.Fail(func(r *http.Request) storetest.Fault {
		if storetest.IsPut(r) || storetest.IsPart(r) || storetest.IsComplete(r) {
			return storetest.Refused
		}

		return storetest.Passed
	})
	defer b.server.Fail(nil)

	d := drive(t, "talosop_etcd_backup", credentialed)
	b.ForgetCalls()

	done := d.apply(t, b.config(b.bucket(configuration{"prefix": "refused"}), nil))
	if !done.failed() || !d.state.IsNull() {
		t.Errorf("the state is %v", d.state)
	}

	if calls := b.CallsTo("EtcdSnapshot"); len(calls) != 1 {
		t.Errorf("%d members were asked because the bucket refused", len(calls))
	}

	b.server.Fail(nil)
	b.expectNothing(t, "refused/")
}

// The next member is asked when one breaks off; when all do, nothing is stored.
func testBackupMemberFails(t *testing.T, b *backups) {
	defer func() {
		for _, m := range b.controlPlane {
			m.ClearFaults()
		}
	}()

	leader := b.leader(t)

	for _, m := range b.controlPlane {
		if m.Hostname() != leader {
			m.SetFault(talossim.Fault{Method: "EtcdSnapshot", Count: -1, After: 8000, EndEarly: true})
		}
	}

	d := drive(t, "talosop_etcd_backup", credentialed)
	config := b.config(b.bucket(configuration{"prefix": "fails"}), configuration{"triggers": configuration{"run": "1"}})

	done := d.apply(t, config).must(t)
	if member := text(t, done.value, "member"); member != leader {
		t.Errorf("%s gave the snapshot", member)
	}

	for _, m := range b.controlPlane {
		if m.Hostname() == leader {
			m.SetFault(talossim.Fault{Method: "EtcdSnapshot", Count: -1, After: 8000, Cut: true})
		}
	}

	config["triggers"] = configuration{"run": "2"}
	before, keys := d.state, len(b.keys(t, "fails/"))
	done = d.apply(t, config)

	if !done.failed() || !d.state.Equal(before) {
		t.Error("a snapshot that broke off is in state")
	}

	for _, m := range b.controlPlane {
		if !strings.Contains(show(done.diagnostics), m.Hostname()+": ") {
			t.Errorf("%s is not named: %s", m.Hostname(), show(done.diagnostics))
		}
	}

	if after := len(b.keys(t, "fails/")); after != keys {
		t.Errorf("%d objects are left, want %d", after, keys)
	}
}

// An interrupted apply leaves nothing half done.
func testBackupCancelled(t *testing.T, b *backups) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	b.server.Fail(func(r *http.Request) storetest.Fault {
		if storetest.IsPut(r) || storetest.IsPart(r) {
			cancel()

			return storetest.Stalled
		}

		return storetest.Passed
	})
	defer b.server.Fail(nil)

	d := drive(t, "talosop_etcd_backup", credentialed)

	done := d.applyIn(t, ctx, b.config(b.bucket(configuration{"prefix": "cancelled"}), nil))
	if !done.failed() || !d.state.IsNull() || !strings.Contains(show(done.diagnostics), "cancelled") {
		t.Errorf("the state is %v: %s", d.state, show(done.diagnostics))
	}

	b.server.Fail(nil)
	b.expectNothing(t, "cancelled/")
}

func testBackupDestroyed(t *testing.T, b *backups) {
	for _, test := range []struct {
		prefix   string
		delete   bool
		key      configuration
		provider configuration
		left     bool
		said     string
	}{
		{prefix: "stays", provider: credentialed, left: true},
		{prefix: "goes", delete: true, provider: credentialed, said: "A backup is deleted"},
		{prefix: "blind", delete: true, key: ownKey, left: true, said: "Give the credentials in s3 of the provider"},
	} {
		bucket := b.bucket(test.key)
		bucket["prefix"] = test.prefix

		d := drive(t, "talosop_etcd_backup", test.provider)
		created := d.apply(t, b.config(bucket, configuration{"delete_on_destroy": test.delete})).must(t)

		if warned := strings.Contains(show(created.diagnostics), "Doubtful delete_on_destroy"); warned != (test.key != nil) {
			t.Errorf("%s: the plan says %s", test.prefix, show(created.diagnostics))
		}

		done := d.apply(t, nil)
		if done.failed() != (test.left && test.delete) || !strings.Contains(show(done.diagnostics), test.said) {
			t.Errorf("%s: %s", test.prefix, show(done.diagnostics))
		}

		if left := len(b.keys(t, test.prefix+"/")) > 0; left != test.left {
			t.Errorf("%s: objects left is %v", test.prefix, left)
		}
	}
}

// What is imported as it is configured has an empty plan.
func testBackupImported(t *testing.T, b *backups) {
	bucket := b.bucket(configuration{"prefix": "imported"})
	config := b.config(bucket, configuration{
		"compression": "zstd", "include_secrets": true, "encryption": configuration{"recipients": []any{testRecipient}},
	})
	key := text(t, drive(t, "talosop_etcd_backup", credentialed).apply(t, config).must(t).value, "key")

	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(secrets, []byte(b.bundle), 0o600); err != nil {
		t.Fatal(err)
	}

	planes := map[string]string{}
	for _, m := range b.controlPlane {
		planes[m.Name()] = m.Address().String()
	}

	id := map[string]any{"secrets": secrets, "control_plane": planes, "s3": bucket, "key": key, "recipients": []string{testRecipient}}
	d := drive(t, "talosop_etcd_backup", credentialed)
	d.imports(t, encoded(t, id)).must(t)

	config["cluster"] = plain(t, fieldsOf(t, d.state)["cluster"])
	d.expectEmpty(t, "after the import", config)

	// What the import could not know is stored, and takes no snapshot.
	config["triggers"], config["schedule"] = configuration{"a": "1"}, "@daily"

	if after := text(t, d.apply(t, config).must(t).value, "key"); after != key {
		t.Error("the first apply took a snapshot")
	}

	config["triggers"] = configuration{"a": "2"}

	if after := text(t, d.apply(t, config).must(t).value, "key"); after == key {
		t.Error("the second apply took none")
	}

	for name, change := range map[string]any{
		"key": "imported/other/" + filepath.Base(key), "s3": configuration{"bucket": "b", "secret_access_key": "x"}, "control_plane": nil, "unheard": 1,
	} {
		wrong := map[string]any{}
		for n, v := range id {
			wrong[n] = v
		}

		wrong[name] = change

		if done := drive(t, "talosop_etcd_backup", credentialed).imports(t, encoded(t, wrong)); !done.failed() {
			t.Errorf("an import with %s %v is fine", name, change)
		}
	}
}

// A bucket that cannot be reached changes nothing, and fails no plan.
func testBackupUnreachable(t *testing.T, b *backups) {
	for name, test := range map[string]struct{ provider, key configuration }{"refresh": {provider: credentialed}, "plan": {key: ownKey}} {
		bucket := b.bucket(test.key)
		bucket["prefix"] = "unreachable"
		config := b.config(bucket, configuration{"timeouts": configuration{"read": "200ms"}})

		d := drive(t, "talosop_etcd_backup", test.provider)
		d.apply(t, config).must(t)

		b.server.Fail(func(*http.Request) storetest.Fault { return storetest.Refused })

		read := d.refresh(t).must(t)
		planned := d.plan(t, config).must(t)

		b.server.Fail(nil)

		if !planned.value.Equal(d.state) {
			t.Errorf("%s: the plan is not empty", name)
		}

		if said := show(append(read.diagnostics, planned.diagnostics...)); !strings.Contains(said, "The store of a backup does not answer") {
			t.Errorf("%s: it says %s", name, said)
		}
	}
}

// What killed runs left half stored goes before the next snapshot; without the Lease, which
// says that nobody else stores one right now, it stays for a day.
func testBackupSweeps(t *testing.T, b *backups) {
	for _, test := range []struct {
		patience time.Duration
		left     int
	}{{time.Nanosecond, 1}, {time.Minute, 0}} {
		m := impatientMachinery()
		m.patience = test.patience

		d := drive(t, "talosop_etcd_backup", nil)
		d.server = serve(t, m, credentialed)

		b.server.Orphan(t, "sweeps/test/etcd-snapshot-2026-01-01T00-00-00Z-"+markOf(t, b.bundle)+"-aaaaaa.db")
		d.apply(t, b.config(b.bucket(configuration{"prefix": "sweeps"}), nil)).must(t)

		if left, err := b.store(t).Sweep(t.Context(), "sweeps/", everything); err != nil || left != test.left {
			t.Errorf("with a patience of %s %d uploads are left, want %d (%v)", test.patience, left, test.left, err)
		}
	}
}

// What the resource says of a snapshot is what etcd's own tool says, of a real etcd.
func TestAccEtcdBackupOfRealEtcd(t *testing.T) {
	t.Parallel()

	etcdutl := clitest.Asset(t, "etcdutl")
	clitest.Asset(t, "etcd")

	b := newBackups(t, talossim.Options{Assets: filepath.Dir(etcdutl)})
	folder := t.TempDir()
	d := drive(t, "talosop_etcd_backup", nil)
	done := d.apply(t, b.config(nil, configuration{"file": configuration{"path": folder}})).must(t)

	out, err := exec.CommandContext(t.Context(), etcdutl, "snapshot", "status", "-w", "simple", filepath.Join(folder, text(t, done.value, "key"))).Output()
	if err != nil {
		t.Fatal(err)
	}

	// Hash, revision, number of keys, size and version.
	told := strings.Split(strings.TrimSpace(string(out)), ", ")
	if told[0] != text(t, done.value, "hash") || told[1] != text(t, done.value, "revision") {
		t.Errorf("etcdutl says %v, the resource %s and %s", told, text(t, done.value, "hash"), text(t, done.value, "revision"))
	}

	d.expectEmpty(t, "after the create", b.config(nil, configuration{"file": configuration{"path": folder}}))
}

// snapshotFrom streams a snapshot of the cluster as a source of an archive.
func (b *backups) snapshotFrom(t *testing.T) backup.Source {
	t.Helper()

	d := drive(t, "talosop_etcd_backup", nil)
	folder := t.TempDir()
	key := text(t, d.apply(t, b.config(nil, configuration{"file": configuration{"path": folder}})).must(t).value, "key")

	return func(_ context.Context, to io.Writer) error {
		data, err := os.ReadFile(filepath.Join(folder, key))
		if err == nil {
			_, err = to.Write(data)
		}

		return err
	}
}
