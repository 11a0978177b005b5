package restore

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Snapshot is the configured snapshot that a cluster starts with. Identities and passphrase are write-only: they are
// in configurations, and null in plans and states.
type Snapshot struct {
	S3         types.Object `tfsdk:"s3"`
	File       types.Object `tfsdk:"file"`
	SHA256     types.String `tfsdk:"sha256"`
	Identities types.List   `tfsdk:"identities_wo"`
	Passphrase types.String `tfsdk:"passphrase_wo"`
}

// Attribute is restore_from of resources that create clusters.
func Attribute() schema.SingleNestedAttribute {
	return tf.OptionalObject("etcd snapshot to start the cluster from, of `talosop_etcd_backup` or `talosctl etcd "+
		"snapshot`, with the same secrets and no newer Kubernetes; during the restore, `TMPDIR` holds it unencrypted. It "+
		"applies at create, and after a reset of every control plane: see the [guide](../guides/etcd-backups)."+
		tf.TerraformOnly, attributes())
}

// attributes are those of Snapshot.
func attributes() map[string]schema.Attribute {
	all := tf.Briefly(store.RestoresBackup(""))

	if bucket, ok := all["s3"].(schema.SingleNestedAttribute); ok {
		key := bucket.Attributes["key"]
		bucket.MarkdownDescription = "Object of the snapshot, unless you set `file`. All attributes except `key` are as " +
			"in `s3` of `talosop_etcd_backup`."
		bucket.Attributes = tf.AsIn("s3", bucket.Attributes)
		bucket.Attributes["key"] = key
		all["s3"] = bucket
	}

	all["sha256"] = tf.OptionalString("SHA-256 of the stored bytes. Required for a snapshot without an authentic " +
		"record.")
	all["identities_wo"] = schema.ListAttribute{
		Optional:            true,
		Sensitive:           true,
		WriteOnly:           true,
		ElementType:         types.StringType,
		MarkdownDescription: "age identities (`AGE-SECRET-KEY-1…`), one of which decrypts the snapshot.",
	}
	all["passphrase_wo"] = schema.StringAttribute{
		Optional:            true,
		Sensitive:           true,
		WriteOnly:           true,
		MarkdownDescription: "Passphrase that decrypts the snapshot.",
	}

	return all
}

// RecordAttributes describe what the etcd of a cluster started with.
func RecordAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"restored_from": tf.ComputedString("Snapshot of the last etcd restore, such as `s3://bucket/key` or a file path; " +
			"null if there was none. To restore the same snapshot again, use a copy and its `sha256`."),
		"restored_at": tf.ComputedString("When etcd started from that snapshot, by the clock of the control plane that " +
			"it started on."),
	}
}

// Type is the type of restore_from.
func Type() map[string]attr.Type { return tf.ObjectOf(Attribute().Attributes).AttrTypes }
