package etcdbackup

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
)

const takesAnother = " A change takes a new snapshot."

func etcdBackupAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := store.KeepsBackups()
	maps.Copy(attributes, etcdBackupArguments())
	maps.Copy(attributes, etcdBackupOccasions(ctx))
	maps.Copy(attributes, etcdBackupResults())

	return attributes
}

// etcdBackupArguments describe what is stored of which cluster.
func etcdBackupArguments() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": clusterhandle.KeptObject(tf.RequiredObject("Handle of the cluster: `cluster` of "+
			"`talosop_control_plane` or `talosop_cluster`, "+
			"or an object that you write with at least `name`, `endpoint`, `secrets` and `talos_endpoints`. A different "+
			"`name`, or secrets of another cluster, take a new snapshot. All other changes apply to the next snapshot.",
			clusterhandle.AccessAttributes()), "talos_version", "phase"),
		"encryption": tf.OptionalObject("Encryption with [age](https://age-encryption.org) before a snapshot leaves the "+
			"computer that runs Terraform, with exactly one of `recipients` and `passphrase_wo`. Default: none, so "+
			"snapshots contain every Secret of the cluster in clear text."+takesAnother, map[string]schema.Attribute{
			"recipients": tf.OptionalStrings("Public keys, such as `age1…`, as `age-keygen` prints them. The owner of any " +
				"of the keys can decrypt the snapshots." + takesAnother),
			"passphrase_wo": tf.OptionalSecret("Passphrase that decrypts the snapshots. Deriving a key from it takes a " +
				"second and 256 MiB of memory."),
			"passphrase_wo_version": tf.OptionalString("A value of your choice that marks a change of `passphrase_wo`, such " +
				"as a number or a date." + takesAnother),
		}),
		"compression": tf.OptionalOneOf("`zstd`, which usually makes snapshots a fraction of their size and which `zstd "+
			"-d` decompresses, or `none`. Default: `none`."+takesAnother, CompressionNone, backup.Zstd),
		"include_secrets": tf.OptionalBool("Whether to store the encrypted secrets bundle, with the Talos and Kubernetes " +
			"versions, beside each snapshot; together they are enough to recreate the cluster. Only with `encryption`; " +
			"default: `false`." + takesAnother),
	}
}

// etcdBackupOccasions describe when a snapshot is taken, and when one is deleted.
func etcdBackupOccasions(ctx context.Context) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"retain": tf.OptionalObject("Which snapshots of this cluster stay in this location after a new one, with their "+
			"stored files. The newest snapshot always stays; snapshots without a record of the cluster neither count nor "+
			"are deleted. Default: all; a change applies at once and takes no new snapshot.",
			map[string]schema.Attribute{
				"count": tf.RequiredNumber("Number of newest snapshots to keep; at least 1." + store.AnyTime),
				"min_age": tf.OptionalDuration("Minimum age at which a snapshot is deleted, such as `168h`, regardless of " +
					"their number. Default: `0s`." + store.AnyTime),
			}),
		"triggers": tf.OptionalStringMap("Values of your choice, such as versions or a date. Any change takes a new "+
			"snapshot, before resources that depend on this one change.", tf.MayBeBlank{}),
		"schedule": tf.OptionalString("When snapshots are due, for scheduled Terraform runs: a cron expression of five "+
			"fields in `time_zone`, such as `0 3 * * *`, `@hourly`, `@daily`, `@weekly`, `@monthly`, or `@every 6h` after "+
			"the last snapshot (default: never). A plan after `next_due` takes one snapshot, however many times were "+
			"missed; without a plan, nothing happens. A change takes none and counts from its apply.", timetable.Expression),
		"time_zone": tf.OptionalString("IANA time zone of `schedule`, such as `Europe/Berlin`. Default: `UTC`."+
			store.AnyTime, timetable.TimeZone),
		"delete_on_destroy": tf.OptionalBool("Whether a destroy deletes the snapshot of `key` (default `false`); older " +
			"snapshots always stay. It needs credentials that are not write-only, such as those of `s3` of the provider." +
			store.AnyTime),
		"timeouts": backupTimeouts(ctx),
	}
}

func backupTimeouts(ctx context.Context) schema.Attribute {
	return tf.TimeoutsAttribute(ctx, store.AnyTime, map[string]string{
		"create": "Time for the first snapshot. Default: `30m`.",
		"read":   "Time to read the store. Default: `1m`. A store that does not answer in time changes nothing.",
		"update": "Time for another snapshot. Default: `30m`.",
		"delete": "Time to delete the snapshot. Default: `30m`.",
	})
}

// etcdBackupResults are the facts about the snapshot.
func etcdBackupResults() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("Name of the cluster."),
		"key": tf.ComputedString("Key of the snapshot in the bucket, or its path below the folder: " +
			"`<prefix>/<cluster>/etcd-snapshot-<time>-<mark>-<random>.db`, with `.zst` and `.age` if compressed and " +
			"encrypted. `restore_from.s3.key` takes it; for a folder, `restore_from.file.path` is `<file.path>/<key>`. A " +
			"key is never reused."),
		"status": tf.ComputedString("`stored` if the store had the snapshot as recorded at the last refresh. Any other " +
			"status plans a new one: `missing` or `changed` for the object, `due` if `schedule` named a time since."),
		"size": tf.ComputedNumber("Size of the stored object in bytes."),
		"checksum": tf.ComputedString("Checksum that the store reports for the object, such as `CRC32C:…`; null for " +
			"servers without one. Each refresh compares it."),
		"sha256": tf.ComputedString("SHA-256 of the stored object in hexadecimal, as `sha256sum` prints it."),
		"secrets_key": tf.ComputedString("Key of the encrypted secrets beside the snapshot; null without " +
			"`include_secrets`. `age -d` decrypts it to a file that `talosop_secrets` imports."),
		"database_size": tf.ComputedNumber("Size of the database in the snapshot in bytes, before compression, as `etcdutl " +
			"snapshot status` prints it."),
		"revision": tf.ComputedNumber("etcd revision when the snapshot was taken, as `etcdutl snapshot status` prints it."),
		"hash":     tf.ComputedString("Hash of the database in hexadecimal, as `etcdutl snapshot status` prints it."),
		"objects": tf.ComputedNumberMap("Number of Kubernetes objects in the snapshot by resource: the plural name, such " +
			"as `secrets`, with the group of custom resources, such as `certificates.cert-manager.io`. A comparison with the " +
			"snapshot of a restored cluster shows what is missing ([guide](../guides/restore-drill)). Nodes and what else " +
			"an isolated restore removes do not count."),
		"member": tf.ComputedString("Name of the etcd member that provided the snapshot: a healthy member, and a " +
			"follower if there is one."),
		"time":          tf.ComputedTime("When the snapshot was taken (RFC 3339, UTC)."),
		"talos_version": tf.ComputedString("Talos version of the machine that provided the snapshot."),
		"kubernetes_version": tf.ComputedString("Kubernetes version of the API server when the snapshot was taken, or of " +
			"the handle if the API server did not answer. A snapshot cannot be restored into an older minor version."),
		"kept": tf.ComputedNumber("Number of snapshots of this cluster in the location after the last apply that changed " +
			"this resource. Null if the store did not answer."),
		"next_due": tf.ComputedTime("When the next snapshot is due by `schedule` (RFC 3339, UTC): the first scheduled " +
			"time after `time`, or after the apply that changed it. Null without `schedule`."),
	}
}
