package etcdbackup

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
)

// importOfBackup shows an import ID of a backup.
const importOfBackup = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "s3": {"bucket": "prod-backups", "prefix": "talos"}, ` +
	`"key": "talos/prod/etcd-snapshot-2026-01-02T15-04-05Z-0123456789abcdef-abcdef.db"}`

// backupImport is an import ID: a JSON object that locates the snapshot and its cluster. Everything else is read
// from both.
type backupImport struct {
	clusterimport.Source

	ControlPlane map[string]string `json:"control_plane"`
	// S3 and File are as in the configuration, without credentials.
	S3   map[string]any `json:"s3"`
	File map[string]any `json:"file"`
	Key  string         `json:"key"`
	// Recipients are those of the encryption, which snapshots do not contain.
	Recipients []string `json:"recipients"`
}

func parseBackupImport(id string) (backupImport, error) {
	var request backupImport

	if err := clusterimport.DecodeImport(id, &request); err != nil {
		return request, err
	}

	return request, request.check()
}

func (r backupImport) check() error {
	switch {
	case r.Check() != nil:
		return r.Check()
	case len(r.ControlPlane) == 0:
		return errors.New("control_plane is missing")
	case r.Key == "":
		return errors.New("key is missing")
	}

	return nil
}

// location is `s3` and `file` of the configuration.
func (r backupImport) location(ctx context.Context) (bucket, folder types.Object, err error) {
	attributes := store.KeepsBackups()

	if bucket, err = given(ctx, attributes["s3"], r.S3, "s3"); err != nil {
		return bucket, folder, err
	}

	folder, err = given(ctx, attributes["file"], r.File, "file")

	return bucket, folder, err
}
