package provider

import (
	"os"
	"path/filepath"
	"testing"
)

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
