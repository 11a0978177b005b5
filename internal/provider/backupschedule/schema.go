package backupschedule

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

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
	DefaultNamespace  = "talosop-backup"
	defaultRunTimeout = "1h"
	defaultHistory    = 3
)

// The texts that say what a change of a schedule does.
const (
	nextRun      = " A change counts for the runs from then on."
	movesObjects = " A change replaces the resource: what it has in the cluster is removed and made anew, and " +
		"the snapshots in the bucket stay."
)

// scheduleBucket are the attributes of the bucket that talos-backup can be told.
var scheduleBucket = []string{"bucket", "region", "endpoint", "path_style", "ca"}

func etcdBackupScheduleAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := scheduleArguments(ctx)
	maps.Copy(attributes, schedulePodAttributes())
	maps.Copy(attributes, scheduleResults())

	return attributes
}

func scheduleArguments(ctx context.Context) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": schema.SingleNestedAttribute{
			Required: true,
			MarkdownDescription: "Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, or an " +
				"object written by hand with at least `name`, `endpoint` and `secrets`. The secrets of another cluster replace " +
				"the resource.",
			Attributes: clusterhandle.BoundAccess(movesObjects),
		},
		"name": schema.StringAttribute{
			Required: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			MarkdownDescription: "Name of the schedule, of its CronJob and of the folder of its snapshots, such as `nightly`: " +
				"at most " +
				fmt.Sprint(schedule.LongestName) + " lower-case letters, digits and hyphens." + movesObjects,
		},
		"namespace": schema.StringAttribute{
			Optional: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChangeFrom(DefaultNamespace)},
			MarkdownDescription: "Namespace of everything that is made, which Talos has to allow " +
				"([guide](../guides/etcd-backups.md)). Default: `" + DefaultNamespace + "`." + movesObjects,
		},
		"create_namespace": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether the namespace is made when it is missing, with the PodSecurity profile " +
				"`restricted`. One that was made goes with the last schedule in it, unless it holds anything else. Default: " +
				"`true`.",
		},
		"schedule": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "When snapshots are taken: a cron expression of five fields, such as `0 3 * * *`, or " +
				"`@hourly`, `@daily`, `@every 6h` and the like, as Kubernetes takes it." + nextRun,
		},
		"time_zone": schema.StringAttribute{
			Optional:   true,
			Validators: []validator.String{timetable.TimeZone},
			MarkdownDescription: "Time zone of `schedule` by its name in the IANA database, such as `Europe/Berlin`. Default: " +
				"`" + timetable.DefaultZone + "`." + nextRun,
		},
		"suspend": schema.BoolAttribute{
			Optional:            true,
			MarkdownDescription: "Whether no run begins; one that has begun goes on. Default: `false`.",
		},
		"s3":         scheduleBucketAttribute(),
		"encryption": scheduleEncryptionAttribute(),
		"compression": schema.StringAttribute{
			Optional:   true,
			Validators: []validator.String{stringvalidator.OneOf(etcdbackup.CompressionNone, backup.Zstd)},
			MarkdownDescription: "`zstd`, which `zstd -d` opens, or `none`. Default: `none`." +
				nextRun,
		},
		"retain": scheduleRetainAttribute(),
		"run_now": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "A value of your choice, such as a date: giving it, and every change of it, takes a snapshot " +
				"at once and waits for it, in a Job that is made from the CronJob. When it fails, the error has what its pods " +
				"say. Removing it does nothing.",
		},
		"timeouts": scheduleTimeouts(ctx),
	}
}

// scheduleBucketAttribute is `s3` with what talos-backup can be told, and with the key that
// goes into a Secret of the cluster.
func scheduleBucketAttribute() schema.Attribute {
	all := store.BucketAttributes(" A change counts for the snapshots taken from then on; the ones in the former place "+
		"stay.", nextRun)
	attributes := map[string]schema.Attribute{}

	for _, name := range scheduleBucket {
		attributes[name] = all[name]
	}

	attributes["prefix"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "Beginning of the keys, without slashes at its ends, such as `talos/backups`: the " +
			"snapshots are at `<prefix>/<cluster>/<name>/…`, see `key_prefix`. Default: none. A change counts for the " +
			"snapshots taken from then on; the ones in the former place stay.",
	}
	attributes["region"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "Region of the bucket, such as `eu-central-1`, needed without `endpoint`. Default: " +
			"`us-east-1` with `endpoint`." +
			nextRun,
	}
	attributes["endpoint"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "URL of the server where it is not AWS, such as `https://minio.example.org:9000`, as pods " +
			"of the cluster and `retain` reach it. Default: that of AWS in the region. A change counts for the snapshots " +
			"taken from then on; the ones in the former place stay.",
	}
	attributes["path_style"] = schema.BoolAttribute{
		Optional: true,
		MarkdownDescription: "Whether the bucket is in the path of the URL (`https://host/bucket/key`) instead of in " +
			"the host name; some builds of talos-backup choose by themselves: the path, but for AWS, Google and Aliyun. " +
			"Default: `true` with `endpoint`, `false` without." + nextRun,
	}

	for name, description := range map[string]string{
		"access_key_id_wo": "Id of the access key that the pods use, together with `secret_access_key_wo`; without one, " +
			"they have to have an identity of their own, such as that of the machine.",
		"secret_access_key_wo": "The access key itself.",
		"session_token_wo": "Session token of temporary credentials, which come with one and end soon: rather give a key " +
			"that does not.",
	} {
		attributes[name] = schema.StringAttribute{
			Optional: true, WriteOnly: true, Sensitive: name != "access_key_id_wo",
			MarkdownDescription: description + tf.WriteOnlyText + " Change `credentials_wo_version` with it.",
		}
	}

	attributes["credentials_wo_version"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "A value of your choice that tells another key from the former one: a change of it brings the " +
			"key that is configured into the cluster.",
	}

	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: "The bucket that the snapshots go to, on AWS or any server that speaks S3.",
		Attributes:          attributes,
	}
}

func scheduleRetainAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Which snapshots of this schedule are kept; an apply deletes those that the refresh before " +
			"it showed in `expired`, oldest first and never the newest. It needs credentials for the bucket where " +
			"Terraform runs, those of `s3` of the provider or what the default chain of the AWS SDK finds, and never uses " +
			"the key of the schedule itself. Default: all are kept; a lifecycle rule of the bucket is the other way.",
		Attributes: map[string]schema.Attribute{
			"count": schema.Int64Attribute{
				Required: true,
				MarkdownDescription: "How many of the newest turns of `schedule` are kept, with all snapshots that the " +
					"bucket got in them by its own clock; at least 1.",
			},
			"min_age": schema.StringAttribute{
				Optional: true, CustomType: tf.DurationType{},
				MarkdownDescription: "How old a snapshot has to be to go, such as `168h`, however many there are. Default: `0s`.",
			},
		},
	}
}

func scheduleEncryptionAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Encryption with [age](https://age-encryption.org) before a snapshot leaves the cluster. " +
			"Default: snapshots are stored as they are, with every Secret of the cluster in them." + nextRun,
		Attributes: map[string]schema.Attribute{
			"recipients": schema.ListAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "The public key as `age-keygen` prints it, `age1…`; talos-backup takes one. `age -d` with " +
					"the secret key opens the snapshots." + nextRun,
			},
		},
	}
}

// schedulePodAttributes say how the pods run.
func schedulePodAttributes() map[string]schema.Attribute {
	quantities := func(description string) schema.MapAttribute {
		return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description + nextRun}
	}
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description + nextRun}
	}
	oneOf := func(description string, allowed ...string) schema.StringAttribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: description + nextRun,
			Validators: []validator.String{stringvalidator.OneOf(allowed...)},
		}
	}
	count := func(description string) schema.Int64Attribute {
		return schema.Int64Attribute{Optional: true,
			MarkdownDescription: fmt.Sprintf("%s Default: `%d`.", description, defaultHistory)}
	}

	return map[string]schema.Attribute{
		"image": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "The image of talos-backup.",
			Attributes: map[string]schema.Attribute{
				"repository": text("Registry and repository, without a tag. Default: `" + schedule.DefaultRepository + "`."),
				"tag": text("Tag, with `@sha256:…` behind it for a digest; releases up to `v0.1.0-beta.3` cannot compress, " +
					"and some S3 servers refuse them. Default: `" + schedule.DefaultTag + "`."),
				"pull_secret": text("Name of a Secret of the namespace with the registry's credentials, which has to exist. " +
					"Default: none."),
			},
		},
		"history": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "How many Jobs that ended are kept, with their pods and logs.",
			Attributes: map[string]schema.Attribute{
				"successful": count("Those that succeeded."),
				"failed":     count("Those that failed."),
			},
		},
		"starting_deadline": schema.StringAttribute{
			Optional: true, CustomType: tf.DurationType{},
			MarkdownDescription: "How late a run may still begin when its time was missed, such as `10m`; at least `10s`, " +
				"because Kubernetes looks that often. Default: any time." + nextRun,
		},
		"run_timeout": schema.StringAttribute{
			Optional: true, CustomType: tf.DurationType{},
			MarkdownDescription: "How long a run may take, retries included, before it is ended as failed and later ones " +
				"may begin. Default: `" + defaultRunTimeout + "`." + nextRun,
		},
		"resources": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "What the pods ask for and may use at most. The snapshot is written to the disk of the node " +
				"first, up to three times with `compression` and `encryption`. Default: nothing.",
			Attributes: map[string]schema.Attribute{
				"requests": quantities("Quantities by resource, such as `{ memory = \"64Mi\" }`."),
				"limits":   quantities("Quantities by resource, such as `{ memory = \"1Gi\" }`."),
			},
		},
		"node_selector": schema.MapAttribute{
			Optional: true, ElementType: types.StringType, Validators: []validator.Map{tf.MayBeBlank{}},
			MarkdownDescription: "Labels of the nodes that the pods may run on. Default: any node." + nextRun,
		},
		"tolerations": schema.ListNestedAttribute{
			Optional: true,
			MarkdownDescription: "Taints that the pods tolerate. Default: that of control planes, so that clusters without " +
				"workers are backed up, too; an empty list for none." + nextRun,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":      text("Key of the taint. Default: any, with `operator` `Exists`."),
				"operator": oneOf("`Exists` or `Equal`. Default: `Equal`.", "Exists", "Equal"),
				"value": schema.StringAttribute{
					Optional: true, Validators: []validator.String{tf.MayBeBlank{}},
					MarkdownDescription: "Value of the taint, for `Equal`. Default: none." + nextRun,
				},
				"effect": oneOf("`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: all of them.", "NoSchedule",
					"PreferNoSchedule", "NoExecute"),
				"toleration_seconds": schema.Int64Attribute{Optional: true,
					MarkdownDescription: "How long `NoExecute` is tolerated. Default: for " +
						"ever." + nextRun},
			}},
		},
	}
}

func scheduleTimeouts(ctx context.Context) schema.Attribute {
	return tf.TimeoutsAttribute(ctx, "", map[string]string{
		"create": "Time for making everything, and for the run that `run_now` asks for. Default: `30m`.",
		"read": "Time for a look at the cluster and the bucket. Default: `1m`. What does not answer in time changes " +
			"nothing.",
		"update": "Time for bringing a change to the cluster, and for the run that `run_now` asks for. Default: `30m`.",
		"delete": "Time for removing everything. Default: `30m`.",
	})
}

// scheduleResults are what the cluster and the bucket tell.
func scheduleResults() map[string]schema.Attribute {
	moment := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, CustomType: timetypes.RFC3339Type{}, MarkdownDescription: description}
	}

	return map[string]schema.Attribute{
		"id": schema.StringAttribute{Computed: true,
			MarkdownDescription: "Names of the cluster, the namespace and the schedule, with slashes between " +
				"them."},
		"key_prefix": schema.StringAttribute{Computed: true,
			MarkdownDescription: "What the keys of the snapshots begin with: `<prefix>/<cluster>/<name>/<cluster>-<mark>-`, " +
				"followed by the time (RFC 3339) and `.snap`, with `.zst` and `.age` for what was done to it. `restore_from` " +
				"takes such a key."},
		"next_run": moment("When the next run begins (RFC 3339, UTC), as of the last refresh. Null while the schedule is " +
			"suspended."),
		"last_run": moment("When the last run began (RFC 3339, UTC). Null when there was none yet, as far as the cluster " +
			"knows."),
		"last_success": moment("When the last run that succeeded ended (RFC 3339, UTC). Null when none did, as far as the " +
			"cluster knows. A `check` on it tells when backups stopped."),
		"last_failure": schema.StringAttribute{Computed: true,
			MarkdownDescription: "The last run that failed, of those that `history` keeps: its time, " +
				"its Job and the reason. Null for none."},
		"active": schema.Int64Attribute{Computed: true, MarkdownDescription: "How many runs have not ended."},
		"kept": schema.Int64Attribute{Computed: true,
			MarkdownDescription: "How many snapshots of the schedule the bucket holds. Null without `retain`, " +
				"and when the bucket could not be asked."},
		"expired": schema.ListAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "Keys of the snapshots that `retain` lets go, oldest first. The next apply deletes them.",
		},
		"drift": schema.ListAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "What somebody else changed or removed of what the resource made. The next apply puts it " +
				"right.",
		},
	}
}
