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
		"cluster": tf.RequiredObject("Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, or "+
			"an object written by hand with at least `name`, `endpoint`, `secrets` and `talos_endpoints`. Another `name`, or "+
			"the secrets of another cluster, take a new snapshot; all other changes are for the next one.",
			clusterhandle.AccessAttributes()),
		"encryption": tf.OptionalObject("Encryption with [age](https://age-encryption.org) before a snapshot leaves the "+
			"computer that runs Terraform, with exactly one of `recipients` and `passphrase_wo`. Default: snapshots are "+
			"stored as they are, with every Secret of the cluster in them."+takesAnother, map[string]schema.Attribute{
			"recipients": tf.OptionalStrings("Public keys, such as `age1…` as `age-keygen` prints them. The owner of any of " +
				"the keys can open the snapshots." + takesAnother),
			"passphrase_wo": tf.OptionalSecret("Passphrase that opens the snapshots. Making a key of it takes a second " +
				"and 256 MiB of memory."),
			"passphrase_wo_version": tf.OptionalString("A value of your choice that tells another `passphrase_wo` from the " +
				"former one, such as a number or a date." + takesAnother),
		}),
		"compression": tf.OptionalOneOf("`zstd`, which `zstd -d` opens and which makes snapshots a fraction of their size "+
			"as a rule, or `none`. Default: `none`."+takesAnother, CompressionNone, backup.Zstd),
		"include_secrets": tf.OptionalBool("Whether the secrets bundle of the cluster is stored beside each snapshot, " +
			"encrypted in the same way, with the versions of Talos and Kubernetes: together they are all it takes to build " +
			"the cluster anew; only with `encryption`. Default: `false`." + takesAnother),
	}
}

// etcdBackupOccasions describe when a snapshot is taken, and when one is deleted.
func etcdBackupOccasions(ctx context.Context) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"retain": tf.OptionalObject("Which snapshots of this cluster in this place are kept after a new one was taken, with "+
			"all that is stored beside them; the newest never goes, and what the cluster did not record neither counts nor "+
			"goes. Default: all are kept. A change is carried out at once and takes no new snapshot.",
			map[string]schema.Attribute{
				"count": tf.RequiredNumber("How many of the newest snapshots are kept; at least 1." + store.AnyTime),
				"min_age": tf.OptionalDuration("How old a snapshot has to be to go, such as `168h`, however many there are. " +
					"Default: `0s`." + store.AnyTime),
			}),
		"triggers": tf.OptionalStringMap("Values of your choice, such as versions or a date: any change of them takes a new "+
			"snapshot, before what depends on this resource goes on.", tf.MayBeBlank{}),
		"schedule": tf.OptionalString("When snapshots are due, for those who run Terraform on a timer: a cron expression of "+
			"five fields in `time_zone`, such as `0 3 * * *`, or `@hourly`, `@daily`, `@weekly`, `@monthly`, or `@every 6h` "+
			"for some time after the last snapshot; none is due by default. A plan after `next_due` takes one new snapshot, "+
			"however many times were missed; nothing happens without a plan. A change takes none by itself and counts from "+
			"its apply.", timetable.Expression),
		"time_zone": tf.OptionalString("Time zone of `schedule` by its name in the IANA database, such as `Europe/Berlin`. "+
			"Default: `UTC`."+store.AnyTime, timetable.TimeZone),
		"delete_on_destroy": tf.OptionalBool("Whether the snapshot of `key` is deleted when the resource is destroyed, " +
			"which needs credentials that are not write-only, such as those of `s3` of the provider; earlier ones stay in any " +
			"case. Default: `false`." + store.AnyTime),
		"timeouts": backupTimeouts(ctx),
	}
}

func backupTimeouts(ctx context.Context) schema.Attribute {
	return tf.TimeoutsAttribute(ctx, store.AnyTime, map[string]string{
		"create": "Time for the first snapshot. Default: `30m`.",
		"read":   "Time for a look at the store. Default: `1m`. A store that does not answer in time changes nothing.",
		"update": "Time for a further snapshot. Default: `30m`.",
		"delete": "Time for deleting the snapshot. Default: `30m`.",
	})
}

// etcdBackupResults are the facts about the snapshot.
func etcdBackupResults() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("Name of the cluster."),
		"key": tf.ComputedString("Key of the snapshot in the bucket, or its path below the folder: " +
			"`<prefix>/<cluster>/etcd-snapshot-<time>-<mark>-<random>.db`, with `.zst` and `.age` for what was done to it. " +
			"`restore_from.s3.key` takes it; for a folder, `restore_from.file.path` is " +
			"`<file.path>/<key>`. No key is ever used twice."),
		"status": tf.ComputedString("`stored` when the store held the snapshot as it was recorded, when it was last asked. " +
			"Anything else plans a new one: `missing` and `changed` when the object is gone or is another one, `due` when " +
			"`schedule` named a time since."),
		"size": tf.ComputedNumber("Size of the stored object in bytes."),
		"checksum": tf.ComputedString("The store's own checksum of the object, as it reports it, such as `CRC32C:…`; " +
			"null for servers that know none. It is compared on each refresh."),
		"sha256": tf.ComputedString("SHA-256 of the stored object in hexadecimal, as `sha256sum` prints it."),
		"secrets_key": tf.ComputedString("Key of the encrypted secrets beside the snapshot; null without " +
			"`include_secrets`. `age -d` opens it to a file that `talosop_secrets` imports."),
		"database_size": tf.ComputedNumber("Size of the database in the snapshot in bytes, before compression, as `etcdutl " +
			"snapshot status` prints it."),
		"revision": tf.ComputedNumber("Revision of etcd when the snapshot was taken, as `etcdutl snapshot status` prints " +
			"it."),
		"hash": tf.ComputedString("Hash of the database in hexadecimal, as `etcdutl snapshot status` prints it."),
		"member": tf.ComputedString("Name of the member of etcd that gave the snapshot: a healthy one, and not the leader " +
			"where there is another."),
		"time":          tf.ComputedTime("When the snapshot was taken (RFC 3339, UTC)."),
		"talos_version": tf.ComputedString("Talos version of the machine that gave the snapshot."),
		"kubernetes_version": tf.ComputedString("Kubernetes version of the API server when the snapshot was taken; that of " +
			"the handle when it did not answer. A snapshot is not restored into an older minor version."),
		"kept": tf.ComputedNumber("How many snapshots of this cluster the place held after the last apply that changed " +
			"something here. Null when it could not be asked."),
		"next_due": tf.ComputedTime("When `schedule` wants the next snapshot (RFC 3339, UTC): the first time that it names " +
			"after `time`, or after the apply that changed it. Null without `schedule`."),
	}
}
