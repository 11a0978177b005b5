package provider

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

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// What is imported as it is configured has an empty plan.
func testBackupImported(t *testing.T, b *backups) {
	bucket := b.Bucket(configuration{"prefix": "imported"})
	config := b.config(bucket, configuration{
		"compression": "zstd", "include_secrets": true, "encryption": configuration{"recipients": []any{testRecipient}},
	})
	key := text(t, drive(t, "talosop_etcd_backup", credentialed).apply(t, config).must(t).Value, "key")

	id := b.importOf(t, bucket, key)
	d := drive(t, "talosop_etcd_backup", credentialed)
	d.imports(t, encoded(t, id)).must(t)

	b.importsByIdentity(t, d, bucket, key, id)

	config["cluster"] = plain(t, fieldsOf(t, d.state)["cluster"])
	d.expectEmpty(t, "after the import", config)

	// What the import could not know is stored, and takes no snapshot.
	config["triggers"], config["schedule"] = configuration{"a": "1"}, "@daily"

	if after := text(t, d.apply(t, config).must(t).Value, "key"); after != key {
		t.Error("the first apply took a snapshot")
	}

	config["triggers"] = configuration{"a": "2"}

	if after := text(t, d.apply(t, config).must(t).Value, "key"); after == key {
		t.Error("the second apply took none")
	}

	for name, change := range map[string]any{
		"key": "imported/other/" + filepath.Base(key), "s3": configuration{"bucket": "b", "secret_access_key": "x"},
		"control_plane": nil, "unheard": 1,
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

	// A record that anybody can have written says nothing of the snapshot beside it.
	b.unsigned(t, key+".json")

	if done := drive(t, "talosop_etcd_backup", credentialed).imports(t, encoded(t, id)); !done.failed() ||
		!strings.Contains(show(done.diagnostics), "no key of this cluster vouches") {
		t.Errorf("a record without a key of the cluster: %s", show(done.diagnostics))
	}
}

// importsByIdentity imports what was imported by an id once more, and looks at the identity that it has from then on.
func (b *backups) importsByIdentity(t *testing.T, imported *driven, bucket configuration, key string, id map[string]any) {
	t.Helper()

	planes := []any{}
	for _, m := range b.controlPlane {
		planes = append(planes, m.Address().String())
	}

	identity := configuration{"secrets": id["secrets"], "control_plane": planes, "key": key,
		"recipients": []any{testRecipient}}
	maps.Copy(identity, bucket)

	d := drive(t, "talosop_etcd_backup", credentialed)
	if d.importsIdentity(t, identity).must(t); !d.state.Equal(imported.state) {
		t.Errorf("by identity %s is imported, and by id %s", d.state, imported.state)
	}

	// A list of the bucket finds the same.
	listed, said := query(t, credentialed, d.Name, configuration{"cluster": "test", "secrets_file": id["secrets"],
		"control_plane": planes, "recipients": identity["recipients"], "s3": bucket}, true, 1)
	if len(listed) != 1 || said != "" || !tftypes.NewValue(d.state.Type(), listed[0].resource).Equal(d.state) {
		t.Errorf("the list has %s, and says %s", displays(listed), said)
	}

	delete(identity, "secrets")
	identity["cluster"] = "test"

	if got, want := d.identity(t), valueOf(t, identityTypeOf(t, d.Name), identity); !got.Equal(want) {
		t.Errorf("the identity is %s, want %s", got, want)
	}

	for name, wrong := range map[string]any{"key": "other/x.db", "control_plane": nil, "cluster": nil} {
		changed := maps.Clone(identity)
		changed[name] = wrong

		if done := drive(t, d.Name, credentialed).importsIdentity(t, changed); !done.failed() {
			t.Errorf("an identity with %s %v is fine", name, wrong)
		}
	}
}

// unsigned takes out of a record what a key of the cluster wrote, and puts its sum right.
func (b *backups) unsigned(t *testing.T, key string) {
	t.Helper()

	body, err := b.store(t).Open(t.Context(), key, store.Range{})
	must(t, err)

	data, err := io.ReadAll(body)
	must(t, errors.Join(err, body.Close()))

	text, _, found := strings.Cut(string(data), ",\n  \"mac\"")
	if !found {
		t.Fatalf("the record is %s", data)
	}

	must(t, b.store(t).Delete(t.Context(), key))

	_, err = b.store(t).Put(t.Context(), key,
		strings.NewReader(fmt.Sprintf("%s,\n  \"sum\": \"%x\"\n}\n", text, sha256.Sum256([]byte(text)))))
	must(t, err)
}

// A copy is imported with what lies beside it, and the original is not touched for it.
func testBackupOfACopyImported(t *testing.T, b *backups) {
	config := b.config(b.Bucket(configuration{"prefix": "original"}), configuration{
		"include_secrets": true, "encryption": configuration{"recipients": []any{testRecipient}},
	})
	key := text(t, drive(t, "talosop_etcd_backup", credentialed).apply(t, config).must(t).Value, "key")
	originals := b.keys(t, "original/")

	for _, original := range originals {
		b.copied(t, original, "copied"+strings.TrimPrefix(original, "original"))
	}

	copied := "copied" + strings.TrimPrefix(key, "original")
	bucket := b.Bucket(configuration{"prefix": "copied"})

	d := drive(t, "talosop_etcd_backup", credentialed)
	d.imports(t, encoded(t, b.importOf(t, bucket, copied))).must(t)

	if got, secrets := text(t, d.state, "key"),
		text(t, d.state, "secrets_key"); got != copied || !strings.HasPrefix(secrets, "copied/test/") {
		t.Errorf("%s and %s were imported instead of %s", got, secrets, copied)
	}

	config["s3"], config["delete_on_destroy"], config["cluster"] = bucket, true, plain(t, fieldsOf(t, d.state)["cluster"])
	d.apply(t, config).must(t)
	d.apply(t, nil).must(t)

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
	must(t, err)

	_, err = b.store(t).Put(t.Context(), to, body)
	must(t, err)
	must(t, body.Close())
}

// importOf is the import id of a snapshot of the cluster.
func (b *backups) importOf(t *testing.T, bucket configuration, key string) map[string]any {
	t.Helper()

	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	must(t, os.WriteFile(secrets, []byte(b.Bundle), 0o600))

	planes := map[string]string{}
	for _, m := range b.controlPlane {
		planes[m.Name()] = m.Address().String()
	}

	return map[string]any{"secrets": secrets, "control_plane": planes, "s3": bucket, "key": key,
		"recipients": []string{testRecipient}}
}
