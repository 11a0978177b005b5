package backupschedule

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
)

// What a schedule is when its resource says nothing.
const (
	DefaultNamespace = "talosop-backup"
	defaultHistory   = 3
)

// The texts that say what a change of a schedule does.
const (
	nextRun       = " A change applies from the next run."
	nextSnapshots = " A change applies to later snapshots; the existing ones stay in the old location."
	movesObjects  = " A change replaces the resource: its objects in the cluster are recreated, and the snapshots in " +
		"the bucket stay."
)

func scheduleAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := argumentAttributes()
	maps.Copy(attributes, podAttributes())
	maps.Copy(attributes, resultAttributes())

	attributes["timeouts"] = tf.TimeoutsAttribute(ctx, "", map[string]string{
		"create": "Time to create everything, including the run for `run_now`. Default: `30m`.",
		"read": "Time to read the cluster and the bucket. Default: `1m`. A source that does not answer in time changes " +
			"nothing.",
		"update": "Time to apply a change to the cluster, including the run for `run_now`. Default: `30m`.",
		"delete": "Time to delete everything. Default: `30m`.",
	})

	return attributes
}

// argumentAttributes say when snapshots of which cluster are taken, and where they go.
func argumentAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": clusterhandle.KeptObject(tf.RequiredObject("Handle of the cluster: `cluster` of "+
			"`talosop_control_plane` or `talosop_cluster`, "+
			"or an object that you write with at least `name`, `endpoint` and `secrets`. Secrets of another cluster replace "+
			"the resource.", clusterhandle.BoundAccess(movesObjects)), "talos_version", "kubernetes_version", "version_contract",
			"phase"),
		"name": schema.StringAttribute{
			Required: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			Validators: []validator.String{acceptsLabel(schedule.LongestName)},
			MarkdownDescription: "Name of the schedule, its CronJob and the folder of its snapshots, such as `nightly`: at " +
				"most " + fmt.Sprint(schedule.LongestName) + " lower-case letters, digits and hyphens." + movesObjects,
		},
		"namespace": schema.StringAttribute{
			Optional: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChangeFrom(DefaultNamespace)},
			Validators: []validator.String{acceptsLabel(63)},
			MarkdownDescription: "Namespace of all created objects, which Talos must allow " +
				"([guide](../guides/etcd-backups.md)). Default: `" + DefaultNamespace + "`." + movesObjects,
		},
		"create_namespace": tf.OptionalBool("Whether to create a missing namespace, with the PodSecurity profile " +
			"`restricted`. A created namespace is deleted with its last schedule, if it is otherwise empty. Default: `true`."),
		"schedule": tf.RequiredString("When to take snapshots: a cron expression of five fields, such as `0 3 * * *`, or " +
			"`@hourly`, `@daily`, `@every 6h` and similar, in the format of Kubernetes." + nextRun),
		"time_zone": tf.OptionalString("IANA time zone of `schedule`, such as `Europe/Berlin`. Default: `"+
			timetable.DefaultZone+"`."+nextRun, timetable.TimeZone),
		"suspend": tf.OptionalBool("Whether to suspend the schedule; a run in progress continues. Default: `false`."),
		"s3":      bucketAttribute(),
		"encryption": tf.OptionalObject("Encryption with [age](https://age-encryption.org) before a snapshot leaves the "+
			"cluster. Default: none, so snapshots contain every Secret of the cluster in clear text."+nextRun,
			map[string]schema.Attribute{"recipients": tf.RequiredStrings("The public key as `age-keygen` prints it, " +
				"`age1…`; talos-backup accepts one. `age -d` with the secret key decrypts the snapshots." + nextRun)}),
		"compression": tf.OptionalOneOf("`zstd`, which `zstd -d` decompresses, or `none`. Default: `none`."+nextRun,
			etcdbackup.CompressionNone, backup.Zstd),
		"retain": tf.OptionalObject("Which snapshots of this schedule stay (default: all, or use a bucket lifecycle "+
			"rule). An apply deletes those that its refresh listed in `expired`, oldest first and never the newest. It uses "+
			"the bucket credentials of `s3` of the provider or the AWS SDK default chain, never the key of the schedule.",
			map[string]schema.Attribute{
				"count": tf.RequiredNumber("How many of the newest intervals of `schedule` to keep, with all snapshots that " +
					"the bucket received in them by its clock; at least 1."),
				"min_age": tf.OptionalDuration("Minimum age at which a snapshot is deleted, such as `168h`, regardless of " +
					"their number. Default: `0s`."),
			}),
		"run_now": tf.OptionalString("A value of your choice, such as a date: a change takes a snapshot at once, in a " +
			"Job from the CronJob, and waits. If it fails, the error contains the output of its pods. Removing the value " +
			"does nothing."),
	}
}

// bucketAttribute is `s3` with the settings that talos-backup supports, and with the key for a Secret of the
// cluster.
func bucketAttribute() schema.Attribute {
	all := store.BucketAttributes(nextSnapshots, nextRun)
	key := func(description string) schema.StringAttribute {
		secret := tf.OptionalSecret(description)
		secret.MarkdownDescription += " Change `credentials_wo_version` with it."

		return secret
	}
	id := key("ID of the access key for the pods, with `secret_access_key_wo`; without a key, they need an identity " +
		"such as that of the machine.")
	id.Sensitive = false

	return tf.RequiredObject("The bucket for the snapshots, on AWS or any S3-compatible server.",
		map[string]schema.Attribute{
			"bucket": all["bucket"],
			"prefix": tf.OptionalString("Prefix of the keys, without leading and trailing slashes, such as `talos/backups`, " +
				"for snapshots at `<prefix>/<cluster>/<name>/…` (see `key_prefix`). Default: none." + nextSnapshots),
			"region": tf.OptionalString("Region of the bucket, such as `eu-central-1`, required without `endpoint`. " +
				"Default: `us-east-1` with `endpoint`." + nextRun),
			"endpoint": tf.OptionalString("URL of the server if it is not AWS, such as `https://minio.example.org:9000`, " +
				"which pods of the cluster and `retain` must reach. Default: AWS in the region." + nextSnapshots),
			"path_style": tf.OptionalBool("Whether the bucket is in the path of the URL (`https://host/bucket/key`) instead " +
				"of the hostname; some talos-backup builds decide: path, except AWS, Google and Aliyun. Default: `true` with " +
				"`endpoint`, otherwise `false`." + nextRun),
			"ca":                   all["ca"],
			"access_key_id_wo":     id,
			"secret_access_key_wo": key("The secret access key."),
			"session_token_wo":     key("Session token of temporary credentials, which expire soon; prefer a permanent key."),
			"credentials_wo_version": tf.OptionalString("A value of your choice that marks a change of the key: changing it " +
				"copies the configured key to the cluster."),
		})
}

// podAttributes say how the pods run.
func podAttributes() map[string]schema.Attribute {
	quantities := func(description string) schema.MapAttribute {
		return tf.OptionalStringMap(description+nextRun, mapvalidator.ValueStringsAre(acceptsQuantity))
	}
	count := func(description string) schema.Int64Attribute {
		return tf.OptionalNumber(fmt.Sprintf("%s Default: `%d`.", description, defaultHistory))
	}

	return map[string]schema.Attribute{
		"image": tf.OptionalObject("The image of talos-backup.", map[string]schema.Attribute{
			"repository": tf.OptionalString("Registry and repository, without a tag. Default: `"+schedule.DefaultRepository+
				"`."+nextRun, acceptsRepository),
			"tag": tf.OptionalString("Tag, with an optional digest `@sha256:…`; releases up to `v0.1.0-beta.3` cannot "+
				"compress, and some S3 servers refuse them. Default: `"+schedule.DefaultTag+"`."+nextRun, acceptsTag),
			"pull_secret": tf.OptionalString("Name of an existing Secret in the namespace with the credentials for the " +
				"registry. Default: none." + nextRun),
		}),
		"history": tf.OptionalObject("Number of finished Jobs to keep, with their pods and logs.",
			map[string]schema.Attribute{
				"successful": count("Successful Jobs."),
				"failed":     count("Failed Jobs."),
			}),
		"starting_deadline": tf.OptionalDuration("Maximum delay of a run that missed its time, such as `10m`; at least "+
			"`10s`, the interval at which Kubernetes checks. Default: unlimited."+nextRun,
			acceptsFrom(10*time.Second)),
		"run_timeout": tf.OptionalDuration("Maximum duration of a run, including retries, after which it fails and later "+
			"runs may start. Default: `1h`."+nextRun, acceptsFrom(time.Minute)),
		"resources": tf.OptionalObject("Requests and limits of the pods. Each run first writes the snapshot to the disk "+
			"of the node, up to three times with `compression` and `encryption`. Default: none.",
			map[string]schema.Attribute{
				"requests": quantities("Quantities by resource, such as `{ memory = \"64Mi\" }`."),
				"limits":   quantities("Quantities by resource, such as `{ memory = \"1Gi\" }`."),
			}),
		"node_selector": tf.OptionalStringMap("Labels that select the nodes for the pods. Default: any node."+nextRun,
			tf.MayBeBlank{}),
		"tolerations": tf.OptionalObjectList("Taints that the pods tolerate; an empty list for none. Default: the taint "+
			"of control planes, to support clusters without workers."+nextRun, map[string]schema.Attribute{
			"key":      tf.OptionalString("Key of the taint. Default: any, with `operator` `Exists`." + nextRun),
			"operator": tf.OptionalOneOf("`Exists` or `Equal`. Default: `Equal`."+nextRun, "Exists", "Equal"),
			"value":    tf.OptionalString("Value of the taint, for `Equal`. Default: none."+nextRun, tf.MayBeBlank{}),
			"effect": tf.OptionalOneOf("`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: all of them."+
				nextRun, "NoSchedule",
				"PreferNoSchedule", "NoExecute"),
			"toleration_seconds": tf.OptionalNumber("How long the pods tolerate `NoExecute`. Default: forever." + nextRun),
		}),
	}
}

// resultAttributes are what the cluster and the bucket report.
func resultAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("Names of the cluster, the namespace and the schedule, separated by slashes."),
		"key_prefix": tf.ComputedString("Prefix of the snapshot keys: `<prefix>/<cluster>/<name>/<cluster>-<mark>-`, " +
			"followed by the time (RFC 3339) and `.snap`, with `.zst` and `.age` if compressed and encrypted. " +
			"`restore_from` takes such a key."),
		"next_run": tf.ComputedTime("When the next run starts (RFC 3339, UTC), from the last refresh. Null while the " +
			"schedule is suspended."),
		"last_run": tf.ComputedTime("When the last run started (RFC 3339, UTC). Null if the cluster knows none."),
		"last_success": tf.ComputedTime("When the last successful run finished (RFC 3339, UTC). Null if the cluster " +
			"knows none. Use a `check` on it to detect failing backups."),
		"last_failure": tf.ComputedString("The last failed run among those that `history` keeps: its time, Job and " +
			"reason. Null if there is none."),
		"active": tf.ComputedNumber("Number of unfinished runs."),
		"kept": tf.ComputedNumber("Number of snapshots of the schedule in the bucket. Null without `retain`, and if the " +
			"bucket did not answer."),
		"expired": tf.ComputedStrings("Keys of the snapshots that `retain` expires, oldest first. The next apply deletes " +
			"them."),
		"drift": tf.ComputedStrings("Changes and deletions by other clients of objects that the resource created. The " +
			"next apply repairs them."),
	}
}
