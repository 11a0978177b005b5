package etcdbackup_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// An import with a matching configuration has an empty plan.
func testBackupImported(t *testing.T, b *backups) {
	bucket := b.Bucket(tftest.Config{"prefix": "imported"})
	config := b.config(bucket, tftest.Config{
		"compression": "zstd", "include_secrets": true, "encryption": tftest.Config{"recipients": []any{testRecipient}},
	})
	key := tftest.Text(t, tftest.Drive(t, "talosop_etcd_backup", credentialed).Apply(t, config).Must(t).Value, "key")

	id := b.importOf(t, bucket, key)
	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	d.Import(t, tftest.JSON(t, id)).Must(t)

	b.importsByIdentity(t, d, bucket, key, id)

	config["cluster"] = tftest.Plain(t, tftest.FieldsOf(t, d.State)["cluster"])
	d.ExpectEmpty(t, "after the import", config)

	// What the import could not know is stored, and takes no snapshot.
	config["triggers"], config["schedule"] = tftest.Config{"a": "1"}, "@daily"

	if after := tftest.Text(t, d.Apply(t, config).Must(t).Value, "key"); after != key {
		t.Error("the first apply took a snapshot")
	}

	config["triggers"] = tftest.Config{"a": "2"}

	if after := tftest.Text(t, d.Apply(t, config).Must(t).Value, "key"); after == key {
		t.Error("the second apply took none")
	}

	for name, change := range map[string]any{
		"key": "imported/other/" + filepath.Base(key), "s3": tftest.Config{"bucket": "b", "secret_access_key": "x"},
		"control_plane": nil, "unheard": 1,
	} {
		wrong := map[string]any{}
		for n, v := range id {
			wrong[n] = v
		}

		wrong[name] = change

		if done := tftest.Drive(t, "talosop_etcd_backup", credentialed).Import(t, tftest.JSON(t, wrong)); !done.Failed() {
			t.Errorf("an import with %s %v is fine", name, change)
		}
	}

	// A record that any client can have written proves nothing about its snapshot.
	b.unsigned(t, key+".json")

	if done := tftest.Drive(t, "talosop_etcd_backup", credentialed).Import(t, tftest.JSON(t, id)); !done.Failed() ||
		!strings.Contains(tftest.Show(done.Diagnostics), backup.ErrUntrusted.Error()) {
		t.Errorf("a record without a key of the cluster: %s", tftest.Show(done.Diagnostics))
	}
}

// importsByIdentity repeats an import by ID with an identity, and checks the identity afterwards.
func (b *backups) importsByIdentity(t *testing.T, imported *tftest.Driven, bucket tftest.Config, key string,
	id map[string]any) {
	t.Helper()

	planes := []any{}
	for _, m := range b.ControlPlane {
		planes = append(planes, m.Address().String())
	}

	identity := tftest.Config{"secrets": id["secrets"], "control_plane": planes, "key": key,
		"recipients": []any{testRecipient}}
	maps.Copy(identity, bucket)

	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	if d.ImportIdentity(t, identity).Must(t); !d.State.Equal(imported.State) {
		t.Errorf("by identity %s is imported, and by id %s", d.State, imported.State)
	}

	// A list of the bucket finds the same snapshot.
	listed, diagnostics := tftest.Query(t, credentialed, d.Name, tftest.Config{"cluster": "test", "secrets_file": id["secrets"],
		"control_plane": planes, "recipients": identity["recipients"], "s3": bucket}, true, 1)
	if len(listed) != 1 || diagnostics != "" || !tftypes.NewValue(d.State.Type(), listed[0].Resource).Equal(d.State) {
		t.Errorf("the list has %s, and says %s", tftest.Displays(listed), diagnostics)
	}

	delete(identity, "secrets")
	identity["cluster"] = "test"

	if got, want := d.Identity(t), tftest.ValueOf(t, tftest.IdentityTypeOf(t, d.Name), identity); !got.Equal(want) {
		t.Errorf("the identity is %s, want %s", got, want)
	}

	for name, wrong := range map[string]any{"key": "other/x.db", "control_plane": nil, "cluster": nil} {
		changed := maps.Clone(identity)
		changed[name] = wrong

		if done := tftest.Drive(t, d.Name, credentialed).ImportIdentity(t, changed); !done.Failed() {
			t.Errorf("an identity with %s %v is fine", name, wrong)
		}
	}
}

// unsigned removes from a record what a key of the cluster wrote, and corrects its checksum.
func (b *backups) unsigned(t *testing.T, key string) {
	t.Helper()

	body, err := b.store(t).Open(t.Context(), key, store.Range{})
	tftest.Must(t, err)

	data, err := io.ReadAll(body)
	tftest.Must(t, errors.Join(err, body.Close()))

	text, _, found := strings.Cut(string(data), ",\n  \"mac\"")
	if !found {
		t.Fatalf("the record is %s", data)
	}

	tftest.Must(t, b.store(t).Delete(t.Context(), key))

	_, err = b.store(t).Put(t.Context(), key,
		strings.NewReader(fmt.Sprintf("%s,\n  \"sum\": \"%x\"\n}\n", text, sha256.Sum256([]byte(text)))))
	tftest.Must(t, err)
}

// A copy is imported with the files next to it, and the original stays untouched.
func testBackupOfACopyImported(t *testing.T, b *backups) {
	config := b.config(b.Bucket(tftest.Config{"prefix": "original"}), tftest.Config{
		"include_secrets": true, "encryption": tftest.Config{"recipients": []any{testRecipient}},
	})
	key := tftest.Text(t, tftest.Drive(t, "talosop_etcd_backup", credentialed).Apply(t, config).Must(t).Value, "key")
	originals := b.keys(t, "original/")

	for _, original := range originals {
		b.copied(t, original, "copied"+strings.TrimPrefix(original, "original"))
	}

	copied := "copied" + strings.TrimPrefix(key, "original")
	bucket := b.Bucket(tftest.Config{"prefix": "copied"})

	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	d.Import(t, tftest.JSON(t, b.importOf(t, bucket, copied))).Must(t)

	if got, secrets := tftest.Text(t, d.State, "key"),
		tftest.Text(t, d.State, "secrets_key"); got != copied || !strings.HasPrefix(secrets, "copied/test/") {
		t.Errorf("%s and %s were imported instead of %s", got, secrets, copied)
	}

	config["s3"], config["delete_on_destroy"], config["cluster"] = bucket, true,
		tftest.Plain(t, tftest.FieldsOf(t, d.State)["cluster"])
	d.Apply(t, config).Must(t)
	d.Apply(t, nil).Must(t)

	if left := b.keys(t, "copied/"); len(left) > 0 {
		t.Errorf("%v are left of the copy", left)
	}

	if left := b.keys(t, "original/"); !slices.Equal(left, originals) {
		t.Errorf("%v are left of the originals %v", left, originals)
	}
}

// copied copies an object of the bucket.
func (b *backups) copied(t *testing.T, from, to string) {
	t.Helper()

	body, err := b.store(t).Open(t.Context(), from, store.Range{})
	tftest.Must(t, err)

	_, err = b.store(t).Put(t.Context(), to, body)
	tftest.Must(t, err)
	tftest.Must(t, body.Close())
}

// importOf is the import ID of a snapshot of the cluster.
func (b *backups) importOf(t *testing.T, bucket tftest.Config, key string) map[string]any {
	t.Helper()

	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	tftest.Must(t, os.WriteFile(secrets, []byte(b.Bundle), 0o600))

	planes := map[string]string{}
	for _, m := range b.ControlPlane {
		planes[m.Name()] = m.Address().String()
	}

	return map[string]any{"secrets": secrets, "control_plane": planes, "s3": bucket, "key": key,
		"recipients": []string{testRecipient}}
}
