package restore

import (
	"path/filepath"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Name names the snapshot. An object of a named server is its URL, since a bucket of the same name on another server
// is another one. How it is otherwise reached and decrypted is no part of the name, and may be unknown in a plan.
func (s Snapshot) Name(r *tf.Reader) string {
	r.Unknown = r.Unknown || s.S3.IsUnknown() || s.File.IsUnknown()

	bucket, folder := tf.Fields{Reader: r, Attributes: s.S3}, tf.Fields{Reader: r, Attributes: s.File}
	name, key, file := bucket.Text("bucket"), bucket.Text("key"), folder.Text("path")
	server := strings.TrimRight(bucket.Text("endpoint"), "/")

	switch {
	case r.Unknown:
		return ""
	case name != "" && key != "" && server != "":
		return server + "/" + name + "/" + key
	case name != "" && key != "":
		return "s3://" + name + "/" + key
	case file != "":
		return filepath.Clean(file)
	default:
		return ""
	}
}

// KeyPath is the attribute that names the snapshot.
func (s Snapshot) KeyPath() finding.Path {
	if s.S3.IsNull() {
		return machineset.RestorePath().AtName("file").AtName("path")
	}

	return machineset.RestorePath().AtName("s3").AtName("key")
}

// keys decrypts the snapshot.
func (s Snapshot) keys() backup.Keys {
	identities, _ := tf.KnownStrings(s.Identities)

	return backup.Keys{Identities: identities, Passphrase: s.Passphrase.ValueString(), SHA256: s.SHA256.ValueString()}
}
