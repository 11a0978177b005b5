package machines

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// restoreModel is the snapshot that it begins with. Identities and passphrase are
// write-only: they are in configurations, and null in plans and states.
type restoreModel struct {
	S3         types.Object `tfsdk:"s3"`
	File       types.Object `tfsdk:"file"`
	Identities types.List   `tfsdk:"identities_wo"`
	Passphrase types.String `tfsdk:"passphrase_wo"`
}

// RestoreAttribute is on resources that make a cluster.
func RestoreAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Snapshot of etcd that the cluster begins with: one of `talosop_etcd_backup`, or any that " +
			"`talosctl etcd snapshot` wrote. The secrets have to be those of the cluster that it was taken of, and " +
			"`kubernetes_version` not older. It is fetched, opened and verified before the first machine is touched, and " +
			"restored on one control plane; the others join. While it is restored it is kept, opened, in a file without a " +
			"name in the folder for temporary files (`TMPDIR`), which needs room for the whole database: in memory where " +
			"that folder is a tmpfs.\n\nIt counts when the cluster is made, and when every control plane was reset since: a " +
			"plan then has the operation `restore etcd on cp-1 from …`. A control plane that holds data of etcd is never " +
			"overwritten: asking for another snapshot than `restored_from` while the cluster lives is refused, and the same " +
			"one is not restored again. Everything that was written since the snapshot is gone. Taking this argument out " +
			"later changes nothing. Default: etcd begins empty." + tf.TerraformOnly,
		Attributes: restoreAttributes(),
	}
}

// restoreAttributes are those of restoreModel.
func restoreAttributes() map[string]schema.Attribute {
	attributes := store.RestoresBackup("")

	attributes["identities_wo"] = schema.ListAttribute{
		Optional:    true,
		Sensitive:   true,
		WriteOnly:   true,
		ElementType: types.StringType,
		MarkdownDescription: "Identities of age, such as `AGE-SECRET-KEY-1…`, of which one opens a snapshot that was " +
			"encrypted for recipients." + tf.WriteOnlyText,
	}
	attributes["passphrase_wo"] = schema.StringAttribute{
		Optional:            true,
		Sensitive:           true,
		WriteOnly:           true,
		MarkdownDescription: "Passphrase that opens a snapshot that was encrypted with one." + tf.WriteOnlyText,
	}

	return attributes
}

// restoredAttributes tell what the etcd of a cluster began with.
func restoredAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"restored_from": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "Snapshot that etcd was restored from last, such as `s3://bucket/key`, with `endpoint` the " +
				"URL `https://s3.example.org/bucket/key`, or the path of a file. Null when it never was, as far as this resource " +
				"knows. To restore that same snapshot once more, after another loss, give it another name: copy the object or " +
				"the file.",
		},
		"restored_at": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "When etcd began with that snapshot, by the clock of the control plane on which it did. By " +
				"it talosop knows a restore whose run was interrupted from an etcd that lives.",
		},
	}
}

// restoreType is the type of restore_from.
func restoreType() map[string]attr.Type { return tf.ObjectOf(RestoreAttribute().Attributes).AttrTypes }
