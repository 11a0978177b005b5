package etcdbackup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// EtcdBackupsModel is the data source talosop_etcd_backups.
type EtcdBackupsModel struct {
	Cluster  types.Object   `tfsdk:"cluster"`
	S3       types.Object   `tfsdk:"s3"`
	File     types.Object   `tfsdk:"file"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`
	Latest   types.String   `tfsdk:"latest"`
	Backups  types.List     `tfsdk:"backups"`
}

// defaultListTimeout is the default timeout for a store.
const defaultListTimeout = time.Minute

func etcdBackupsAttributes() map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"cluster": tf.RequiredObject("Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, "+
			"or an object that you write with `name`, `endpoint` and `secrets`. With `kubernetes_version` and "+
			"`talos_version`, the list also identifies snapshots that need newer versions.", clusterhandle.AccessAttributes()),
		"latest": tf.ComputedString("Key of the newest restorable snapshot; null if there is none. It changes with every " +
			"backup, and a running cluster refuses a different `restore_from`: after the restore, remove that argument or " +
			"write the key into it."),
		"backups": tf.ComputedObjectList("The snapshots, newest first, without partially stored ones.",
			storedAttributes()),
	}

	maps.Copy(attributes, store.ListsBackups())

	return attributes
}

// storedAttributes are the facts about a snapshot in a store. Except key, time and size they come from its record.
func storedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"key": tf.ComputedString("Key of the snapshot in the bucket, for `restore_from.s3.key`, or its path below the " +
			"folder: `restore_from.file.path` is `<file.path>/<key>`."),
		"time": tf.ComputedTime("When the snapshot was taken (RFC 3339, UTC), according to its name."),
		"size": tf.ComputedNumber("Size of the stored object in bytes."),
		"sha256": tf.ComputedString("SHA-256 of the stored object in hexadecimal, as `sha256sum` prints it; null without " +
			"a record from a key of the cluster."),
		"database_size": tf.ComputedNumber("Size of the database in bytes, as `etcdutl snapshot status` prints it; null " +
			"without a record."),
		"revision": tf.ComputedNumber("etcd revision when the snapshot was taken; null without a record."),
		"objects": tf.ComputedNumberMap("Number of Kubernetes objects in the snapshot by resource, as in `objects` of " +
			"`talosop_etcd_backup`; null without a record."),
		"member": tf.ComputedString("Name of the etcd member that provided the snapshot; null without a record."),
		"talos_version": tf.ComputedString("Talos version of the machine that provided the snapshot; null without a " +
			"record."),
		"kubernetes_version": tf.ComputedString("Kubernetes version of the cluster when the snapshot was taken; null " +
			"without a record."),
		"compression": tf.ComputedString("`zstd` for a compressed snapshot; otherwise null."),
		"encryption": tf.ComputedString("`age` for an encrypted snapshot, whose restore needs `identities` or " +
			"`passphrase`; otherwise null."),
		"secrets_key": tf.ComputedString("Key of the encrypted secrets bundle stored with the snapshot; null if there is " +
			"none."),
		"restorable": tf.ComputedBool("Whether the snapshot can be restored by its key, without reading it: a key of the " +
			"cluster wrote its record, and its size matches. Kubernetes and etcd of the handle are new enough. The restore " +
			"verifies its bytes before it touches a machine."),
		"reason": tf.ComputedString("Why the snapshot cannot be restored; null if it can."),
	}
}

// storedType is the type of the elements of backups.
var storedType = tf.ObjectOf(storedAttributes())

// judged is a snapshot in a store, with the reasons against restoring it.
type judged struct {
	backup.Entry

	Reason string
	// Damaged is true when it differs from what was stored.
	Damaged bool
}

// notAuthentic is why a snapshot without an authentic record is not restored without consent.
const notAuthentic = "it has no record that a key of this cluster wrote; it is restored with its sha256 in restore_from"

// Judge decides for each snapshot whether it can be restored into the cluster of a handle, newest first.
func Judge(entries []backup.Entry, handle clusterhandle.AccessModel) []judged {
	var out []judged

	for _, e := range slices.Backward(entries) {
		j := judged{Entry: e}

		switch {
		case errors.Is(e.RecordErr, backup.ErrRecord):
			j.Reason, j.Damaged = e.RecordErr.Error(), true
		case e.RecordErr != nil && !backup.Unrecorded(e.RecordErr) && !errors.Is(e.RecordErr, backup.ErrUntrusted):
			j.Reason = e.RecordErr.Error() // for now
		case e.Record == nil:
			j.Reason = notAuthentic
		case e.Record.Size != e.Size:
			j.Reason, j.Damaged = fmt.Sprintf("it has %d bytes, and %d were stored", e.Size, e.Record.Size), true
		default:
			j.Reason = machineset.TooOldFor(e.Record.Facts, handle.KubernetesVersion.ValueString(),
				handle.TalosVersion.ValueString())
		}

		out = append(out, j)
	}

	return out
}

// Fill puts the content of the store into the model.
func (m *EtcdBackupsModel) Fill(backups []judged) {
	m.Latest = types.StringNull()
	values := []attr.Value{}

	for _, b := range backups {
		if m.Latest.IsNull() && b.Reason == "" {
			m.Latest = types.StringValue(b.Key)
		}

		values = append(values, b.Value())
	}

	m.Backups = types.ListValueMust(storedType, values)
}

// Value is a snapshot as state has it.
func (j judged) Value() types.Object {
	values := map[string]attr.Value{
		"key": types.StringValue(j.Key), "time": timetypes.NewRFC3339TimeValue(j.Name.At), "size": types.Int64Value(j.Size),
		"sha256": types.StringNull(), "database_size": types.Int64Null(), "revision": types.Int64Null(),
		"member":        types.StringNull(),
		"objects":       objectCounts(nil),
		"talos_version": types.StringNull(), "kubernetes_version": types.StringNull(), "secrets_key": types.StringNull(),
		"compression": types.StringNull(), "encryption": types.StringNull(),
		"restorable": types.BoolValue(j.Reason == ""), "reason": tf.TextOrNull(j.Reason),
	}

	if j.Name.Compressed {
		values["compression"] = types.StringValue(backup.Zstd)
	}

	if j.Name.Encrypted {
		values["encryption"] = types.StringValue(backup.Age)
	}

	if r := j.Record; r != nil {
		values["sha256"], values["secrets_key"] = tf.TextOrNull(r.SHA256), tf.TextOrNull(r.Secrets.Key)
		values["database_size"], values["revision"] = types.Int64Value(r.Database.Size), types.Int64Value(r.Database.Revision)
		values["objects"] = objectCounts(r.Objects)
		values["member"], values["talos_version"], values["kubernetes_version"] = tf.TextOrNull(r.Member),
			tf.TextOrNull(r.TalosVersion), tf.TextOrNull(r.KubernetesVersion)
	}

	return types.ObjectValueMust(storedType.AttrTypes, values)
}
