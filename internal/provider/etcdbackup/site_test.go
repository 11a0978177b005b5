package etcdbackup_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// Keys of age for these tests.
const (
	testRecipient = "age1s5x045tarsnxr3ee073t7hez7nlcx2paavfpn6lp5yqqtag4xqaswvqhvf"
	testIdentity  = "AGE-SECRET-KEY-1MCCSGQL7D0LTDU3898EHPV2DHFJYHFPUGUH4EN63CYXAX00NU9CSQKTN4Q"
)

// backups is a cluster with a bucket.
type backups struct {
	*sitetest.Living

	Server *storetest.Server
}

// newBackups creates the cluster as a CLI would.
func newBackups(t *testing.T, opts sim.Options) *backups {
	t.Helper()

	server := storetest.New(t)

	return &backups{sitetest.NewLiving(t, opts), server}
}

// Bucket is `s3` without credentials; more is additional attributes.
func (b *backups) Bucket(more tftest.Config) tftest.Config {
	out := tftest.Config{"bucket": storetest.Bucket, "endpoint": b.Server.Proxy.URL, "ca": b.Server.CA}
	for name, v := range more {
		out[name] = v
	}

	return out
}

var ownKey = tftest.Config{"access_key_id_wo": storetest.AccessKey, "secret_access_key_wo": storetest.SecretKey}

// credentialed is a provider configuration with the key of the bucket.
var credentialed = tftest.Config{
	"s3": tftest.Config{"access_key_id": storetest.AccessKey, "secret_access_key": storetest.SecretKey}}

// config is a backup; more is additional attributes.
func (b *backups) config(bucket tftest.Config, more tftest.Config) tftest.Config {
	out := tftest.Config{"cluster": b.Handle}
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

	s, err := s3.New(t.Context(), b.Server.Config())
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

// Archive is the snapshots of the cluster below a prefix.
func (b *backups) Archive(t *testing.T, prefix string) backup.Archive {
	t.Helper()

	return backup.Archive{Store: b.store(t), Prefix: prefix, Cluster: "test", Mark: tftest.MarkOf(t, b.Bundle),
		RecordKeys: tftest.RecordKeysOf(t, b.Bundle)}
}

// Leader is the name of the member that leads.
func (b *backups) Leader(t *testing.T) string {
	t.Helper()

	const name = "talosop_etcd_members"

	typ := tftest.Schemas(t).DataSourceSchemas[name].ValueType()

	resp, err := tftest.Serve(t, nil).ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
		TypeName: name, Config: tftest.Dynamic(t, tftest.ValueOf(t, typ, tftest.Config{"cluster": b.Handle})),
	})
	if err != nil {
		t.Fatal(err)
	}

	members, _ := tftest.Plain(t, tftest.FieldsOf(t, tftest.Decoded(t, typ, resp.State))["members"]).([]any)
	for _, m := range members {
		if member, _ := m.(tftest.Config); member["leader"] == true {
			return member["name"].(string)
		}
	}

	t.Fatalf("no member leads: %s", tftest.Show(resp.Diagnostics))

	return ""
}

// expectFollower checks which member provided the snapshot.
func (b *backups) expectFollower(t *testing.T, member string) {
	t.Helper()

	calls := b.CallsTo("EtcdSnapshot")
	if len(calls) != 1 || b.Machine(calls[0].Machine).Hostname() != member {
		t.Errorf("snapshots were taken with %v, want one from %s", calls, member)
	}

	if leader := b.Leader(t); member == leader {
		t.Errorf("the leader, %s, gave the snapshot", leader)
	}
}

// expectOpens checks that a stored snapshot, and the files next to it, can be read back.
func (b *backups) expectOpens(t *testing.T, key string) {
	t.Helper()

	keys := backup.Keys{Identities: []string{testIdentity}}

	snapshot, err := b.Archive(t, "own").Fetch(t.Context(), key, keys)
	if err != nil {
		t.Fatal(err)
	}

	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}

	secrets, err := b.Archive(t, "own").Secrets(t.Context(), key, keys)
	if err != nil || !strings.Contains(string(secrets), b.Bundle) ||
		!strings.Contains(string(secrets), `# talos_version: "v1.13.0"`) {
		t.Errorf("the secrets cannot be had back: %v", err)
	}
}

func (b *backups) archiveList(t *testing.T, prefix string) []backup.Entry {
	t.Helper()

	entries, err := b.Archive(t, prefix).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return entries
}

// snapshotFrom streams a snapshot of the cluster as a source of an archive.
func (b *backups) snapshotFrom(t *testing.T) backup.Source {
	t.Helper()

	d := tftest.Drive(t, "talosop_etcd_backup", nil)
	folder := t.TempDir()
	key := tftest.Text(t, d.Apply(t, b.config(nil, tftest.Config{"file": tftest.Config{"path": folder}})).Must(t).Value,
		"key")

	return func(_ context.Context, to io.Writer) error {
		data, err := os.ReadFile(filepath.Join(folder, key))
		if err == nil {
			_, err = to.Write(data)
		}

		return err
	}
}
