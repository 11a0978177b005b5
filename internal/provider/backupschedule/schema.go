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
	nextRun       = " A change counts for the runs from then on."
	nextSnapshots = " A change counts for the snapshots taken from then on; the ones in the former place stay."
	movesObjects  = " A change replaces the resource: what it has in the cluster is removed and made anew, and " +
		"the snapshots in the bucket stay."
)

func scheduleAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := argumentAttributes()
	maps.Copy(attributes, podAttributes())
	maps.Copy(attributes, resultAttributes())

	attributes["timeouts"] = tf.TimeoutsAttribute(ctx, "", map[string]string{
		"create": "Time for making everything, and for the run that `run_now` asks for. Default: `30m`.",
		"read": "Time for a look at the cluster and the bucket. Default: `1m`. What does not answer in time changes " +
			"nothing.",
		"update": "Time for bringing a change to the cluster, and for the run that `run_now` asks for. Default: `30m`.",
		"delete": "Time for removing everything. Default: `30m`.",
	})

	return attributes
}

// argumentAttributes say when snapshots of which cluster are taken, and where they go.
func argumentAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": tf.RequiredObject("Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, or "+
			"an object written by hand with at least `name`, `endpoint` and `secrets`. The secrets of another cluster replace "+
			"the resource.", clusterhandle.BoundAccess(movesObjects)),
		"name": schema.StringAttribute{
			Required: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			Validators: []validator.String{acceptsLabel("name", schedule.LongestName)},
			MarkdownDescription: "Name of the schedule, of its CronJob and of the folder of its snapshots, such as `nightly`: " +
				"at most " + fmt.Sprint(schedule.LongestName) + " lower-case letters, digits and hyphens." + movesObjects,
		},
		"namespace": schema.StringAttribute{
			Optional: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChangeFrom(DefaultNamespace)},
			Validators: []validator.String{acceptsLabel("namespace", 63)},
			MarkdownDescription: "Namespace of everything that is made, which Talos has to allow " +
				"([guide](../guides/etcd-backups.md)). Default: `" + DefaultNamespace + "`." + movesObjects,
		},
		"create_namespace": tf.OptionalBool("Whether the namespace is made when it is missing, with the PodSecurity " +
			"profile `restricted`. One that was made goes with the last schedule in it, unless it holds anything else. " +
			"Default: `true`."),
		"schedule": tf.RequiredString("When snapshots are taken: a cron expression of five fields, such as `0 3 * * *`, or " +
			"`@hourly`, `@daily`, `@every 6h` and the like, as Kubernetes takes it." + nextRun),
		"time_zone": tf.OptionalString("Time zone of `schedule` by its name in the IANA database, such as `Europe/Berlin`. "+
			"Default: `"+timetable.DefaultZone+"`."+nextRun, timetable.TimeZone),
		"suspend": tf.OptionalBool("Whether no run begins; one that has begun goes on. Default: `false`."),
		"s3":      bucketAttribute(),
		"encryption": tf.OptionalObject("Encryption with [age](https://age-encryption.org) before a snapshot leaves the "+
			"cluster. Default: snapshots are stored as they are, with every Secret of the cluster in them."+nextRun,
			map[string]schema.Attribute{"recipients": tf.RequiredStrings("The public key as `age-keygen` prints it, `age1…`; " +
				"talos-backup takes one. `age -d` with the secret key opens the snapshots." + nextRun)}),
		"compression": tf.OptionalOneOf("`zstd`, which `zstd -d` opens, or `none`. Default: `none`."+nextRun,
			etcdbackup.CompressionNone, backup.Zstd),
		"retain": tf.OptionalObject("Which snapshots of this schedule are kept; an apply deletes those that the refresh "+
			"before it showed in `expired`, oldest first and never the newest. It needs credentials for the bucket where "+
			"Terraform runs, those of `s3` of the provider or what the default chain of the AWS SDK finds, and never uses "+
			"the key of the schedule itself. Default: all are kept; a lifecycle rule of the bucket is the other way.",
			map[string]schema.Attribute{
				"count": tf.RequiredNumber("How many of the newest turns of `schedule` are kept, with all snapshots that the " +
					"bucket got in them by its own clock; at least 1."),
				"min_age": tf.OptionalDuration("How old a snapshot has to be to go, such as `168h`, however many there are. " +
					"Default: `0s`."),
			}),
		"run_now": tf.OptionalString("A value of your choice, such as a date: giving it, and every change of it, takes a " +
			"snapshot at once and waits for it, in a Job that is made from the CronJob. When it fails, the error has what its " +
			"pods say. Removing it does nothing."),
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
	id := key("Id of the access key that the pods use, together with `secret_access_key_wo`; without one, " +
		"they have to have an identity of their own, such as that of the machine.")
	id.Sensitive = false

	return tf.RequiredObject("The bucket that the snapshots go to, on AWS or any server that speaks S3.",
		map[string]schema.Attribute{
			"bucket": all["bucket"],
			"prefix": tf.OptionalString("Beginning of the keys, without slashes at its ends, such as `talos/backups`: the " +
				"snapshots are at `<prefix>/<cluster>/<name>/…`, see `key_prefix`. Default: none." + nextSnapshots),
			"region": tf.OptionalString("Region of the bucket, such as `eu-central-1`, needed without `endpoint`. Default: " +
				"`us-east-1` with `endpoint`." + nextRun),
			"endpoint": tf.OptionalString("URL of the server where it is not AWS, such as `https://minio.example.org:9000`, " +
				"as pods of the cluster and `retain` reach it. Default: that of AWS in the region." + nextSnapshots),
			"path_style": tf.OptionalBool("Whether the bucket is in the path of the URL (`https://host/bucket/key`) instead " +
				"of in the host name; some builds of talos-backup choose by themselves: the path, but for AWS, Google and " +
				"Aliyun. Default: `true` with `endpoint`, `false` without." + nextRun),
			"ca":                   all["ca"],
			"access_key_id_wo":     id,
			"secret_access_key_wo": key("The access key itself."),
			"session_token_wo": key("Session token of temporary credentials, which come with one and end soon: rather give a " +
				"key that does not."),
			"credentials_wo_version": tf.OptionalString("A value of your choice that tells another key from the former one: a " +
				"change of it brings the key that is configured into the cluster."),
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
			"tag": tf.OptionalString("Tag, with `@sha256:…` behind it for a digest; releases up to `v0.1.0-beta.3` cannot "+
				"compress, and some S3 servers refuse them. Default: `"+schedule.DefaultTag+"`."+nextRun, acceptsTag),
			"pull_secret": tf.OptionalString("Name of a Secret of the namespace with the registry's credentials, which has to " +
				"exist. Default: none." + nextRun),
		}),
		"history": tf.OptionalObject("How many Jobs that ended are kept, with their pods and logs.",
			map[string]schema.Attribute{
				"successful": count("Those that succeeded."),
				"failed":     count("Those that failed."),
			}),
		"starting_deadline": tf.OptionalDuration("How late a run may still begin when its time was missed, such as `10m`; "+
			"at least `10s`, because Kubernetes looks that often. Default: any time."+nextRun,
			acceptsFrom(10*time.Second, "starting_deadline")),
		"run_timeout": tf.OptionalDuration("How long a run may take, retries included, before it is ended as failed and "+
			"later ones may begin. Default: `1h`."+nextRun, acceptsFrom(time.Minute, "run_timeout")),
		"resources": tf.OptionalObject("What the pods ask for and may use at most. The snapshot is written to the disk of "+
			"the node first, up to three times with `compression` and `encryption`. Default: nothing.",
			map[string]schema.Attribute{
				"requests": quantities("Quantities by resource, such as `{ memory = \"64Mi\" }`."),
				"limits":   quantities("Quantities by resource, such as `{ memory = \"1Gi\" }`."),
			}),
		"node_selector": tf.OptionalStringMap("Labels of the nodes that the pods may run on. Default: any node."+nextRun,
			tf.MayBeBlank{}),
		"tolerations": tf.OptionalObjectList("Taints that the pods tolerate. Default: that of control planes, so that "+
			"clusters without workers are backed up, too; an empty list for none."+nextRun, map[string]schema.Attribute{
			"key":      tf.OptionalString("Key of the taint. Default: any, with `operator` `Exists`." + nextRun),
			"operator": tf.OptionalOneOf("`Exists` or `Equal`. Default: `Equal`."+nextRun, "Exists", "Equal"),
			"value":    tf.OptionalString("Value of the taint, for `Equal`. Default: none."+nextRun, tf.MayBeBlank{}),
			"effect": tf.OptionalOneOf("`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: all of "+
				"them."+nextRun, "NoSchedule",
				"PreferNoSchedule", "NoExecute"),
			"toleration_seconds": tf.OptionalNumber("How long `NoExecute` is tolerated. Default: for ever." + nextRun),
		}),
	}
}

// resultAttributes are what the cluster and the bucket report.
func resultAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": tf.ComputedString("Names of the cluster, the namespace and the schedule, with slashes between them."),
		"key_prefix": tf.ComputedString("What the keys of the snapshots begin with: " +
			"`<prefix>/<cluster>/<name>/<cluster>-<mark>-`, followed by the time (RFC 3339) and `.snap`, with `.zst` and " +
			"`.age` for what was done to it. `restore_from` takes such a key."),
		"next_run": tf.ComputedTime("When the next run begins (RFC 3339, UTC), as of the last refresh. Null while the " +
			"schedule is suspended."),
		"last_run": tf.ComputedTime("When the last run began (RFC 3339, UTC). Null when there was none yet, as far as the " +
			"cluster knows."),
		"last_success": tf.ComputedTime("When the last run that succeeded ended (RFC 3339, UTC). Null when none did, as " +
			"far as the cluster knows. A `check` on it tells when backups stopped."),
		"last_failure": tf.ComputedString("The last run that failed, of those that `history` keeps: its time, its Job and " +
			"the reason. Null for none."),
		"active": tf.ComputedNumber("How many runs have not ended."),
		"kept": tf.ComputedNumber("How many snapshots of the schedule the bucket holds. Null without `retain`, and when " +
			"the bucket could not be asked."),
		"expired": tf.ComputedStrings("Keys of the snapshots that `retain` lets go, oldest first. The next apply deletes " +
			"them."),
		"drift": tf.ComputedStrings("What somebody else changed or removed of what the resource made. The next apply puts " +
			"it right."),
	}
}
