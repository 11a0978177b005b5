package backupschedule

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about schedules of etcd backups.
var Messages = finding.NewCatalog("etcd backup schedules")

// What Talos needs to give pods access. The CLIs do not wrap lines that start with spaces.
const allowTalosAccess = "Talos needs this patch in the configuration of every control plane. Add it to `config_patches` " +
	"of talosop_control_plane or of each talosop_machine, or to `control_plane.config_patches` of talosop_cluster:" +
	"\n\n{{.patch}}"

var (
	regionMissing = Messages.Invalid("schedule_bucket_without_region",
		"Found neither `region` nor `endpoint`.",
		"Allowed: a bucket on AWS with its region, or a bucket at an endpoint.",
		"Set the region of the bucket.")

	compressionUnsupported = Messages.Invalid("schedule_compression_unsupported",
		"Found zstd with talos-backup {{.tag}}.",
		"talos-backup compresses since the builds after v0.1.0-beta.3.",
		"Remove `image.tag` or `compression`.")

	invalidHistory = Messages.Invalid("invalid_history",
		"Found {{.count}}.", "Allowed: 0 to 1000.", "Write how many Jobs to keep.")

	invalidClusterName = Messages.Invalid("schedule_cluster_name",
		"Found {{quote .name}}.",
		"Allowed: a name without slashes, because it is a folder in the bucket.",
		"Use the name of the cluster.")

	notEncrypted = Messages.Warning("schedule_not_encrypted",
		"etcd backups of schedule {{.name}} are not encrypted",
		"A snapshot of etcd contains every Secret of the cluster. Any user who can read the bucket can read them.",
		"Set `encryption` with an age recipient.")

	oneRecipient = Messages.Invalid("schedule_recipients",
		"Found {{.count}} recipients.",
		"Allowed: exactly one, because talos-backup encrypts for one key.",
		"Set the key that decrypts the snapshots, or remove `encryption` to store clear text.")

	invalidRecipient = Messages.Invalid("schedule_recipient_invalid",
		"Found a text that is not an age public key (X25519).",
		"Allowed: a key such as age1…. SSH keys are not supported.",
		"Copy the public key that `age-keygen` prints, not the secret key.")

	invalidValue = Messages.Invalid("schedule_value_invalid",
		"Found {{quote .value}} in the schedule.", "Allowed: {{.allowed}}.", "{{.solution}}")

	snapshotsDeleted = Messages.Warning("snapshots_will_be_deleted",
		"Snapshots of schedule {{.name}} will be deleted",
		"{{.count}} of {{.stored}} snapshots in {{.place}} are beyond `retain`, the oldest first: {{.snapshots}}.",
		"To keep them, raise `retain`.")

	scheduleFailed = Messages.Error("schedule_failed",
		"Unable to {{.verb}} etcd backup schedule {{.name}}",
		"The {{.verb}} of {{.schedule}} failed:{{bullets .causes}}",
		"Correct the cause, then apply again. What was created stays and is used.")

	scheduleIncomplete = Messages.Error("schedule_incomplete",
		"Unable to create etcd backup schedule {{.name}}",
		"The create of {{.schedule}} failed:{{bullets .causes}}",
		"Correct the cause, then apply again. The resource is tainted, so the next apply removes what was created and "+
			"creates it again.")

	scheduleForeign = Messages.Error("schedule_objects_foreign",
		"Unable to {{.verb}} etcd backup schedule {{.name}}",
		"Another owner has an object with a name of {{.schedule}}:{{bullets .causes}}",
		"Choose another name, or remove the object.")

	scheduleNotDeleted = Messages.Error("schedule_not_deleted",
		"Unable to delete etcd backup schedule {{.name}}",
		"The delete of {{.schedule}} failed:{{bullets .causes}}",
		"Apply again. If the cluster is gone for good, remove the resource from state: `terraform state rm`.")

	scheduleDenied = Messages.Error("schedule_talos_access",
		"Unable to {{.verb}} etcd backup schedule {{.name}}",
		"Talos denies access to the pods of {{.schedule}}:{{bullets .causes}}",
		allowTalosAccess+"\nThen apply again.")

	scheduleDeniedLater = Messages.Warning("schedule_talos_access_lost",
		"Talos denies access to etcd backup schedule {{.name}}",
		"The pods of {{.schedule}} cannot take snapshots: {{.cause}}.",
		allowTalosAccess)

	scheduleNotRun = Messages.Error("schedule_run_failed",
		"Unable to run etcd backup schedule {{.name}}",
		"The snapshot that `run_now` requests failed:{{bullets .causes}}",
		"The schedule itself is as configured. Correct the cause, then apply again to repeat the run.")

	scheduleNotSeen = Messages.Warning("schedule_not_observed",
		"etcd backup schedule {{.name}} was not observed",
		"The apply changed the schedule, but talosop could not read it afterwards: {{.cause}}.",
		"The next refresh reads it again.")

	scheduleNotRead = Messages.Warning("schedule_not_read",
		"etcd backup schedule {{.name}} was not read",
		"talosop could not read {{.schedule}}:{{bullets .causes}}",
		"State keeps the result of the last read.")

	scheduleDrifted = Messages.Warning("schedule_drifted",
		"etcd backup schedule {{.name}} has drifted",
		"{{.schedule}} differs from the last apply:{{bullets .drift}}",
		"The next apply repairs it.")

	namespaceKept = Messages.Warning("schedule_namespace_kept",
		"Namespace {{.namespace}} of an etcd backup schedule is kept",
		"The schedule was removed, but its namespace still contains:{{bullets .left}}",
		"The delete of the last schedule in the namespace removes it once it contains nothing else.")

	clusterUnreachable = Messages.Error("schedule_cluster_unreachable",
		"Unable to reach cluster {{.cluster}}",
		"talosop could not connect for the etcd backup schedule: {{.cause}}.",
		"Correct `cluster` of the resource, then try again.")

	scheduleNotImported = Messages.Error("schedule_not_imported",
		"Unable to import the etcd backup schedule",
		"talosop could not read {{.what}}:{{bullets .causes}}",
		"Nothing was imported.",
		"Give a JSON object such as "+importExample+". Add `namespace` unless it is "+DefaultNamespace+".")

	snapshotsNotListed = Messages.Warning("schedule_snapshots_not_listed",
		"Snapshots of schedule {{.name}} were not listed",
		"talosop could not list the snapshots in {{.place}} to apply `retain`:{{bullets .causes}}",
		"No snapshot is deleted.",
		"{{.solution}}",
		"Set credentials that can list and delete there, in `s3` of the provider or in the environment. Or remove `retain`, "+
			"and use a lifecycle rule of the bucket.")

	snapshotsNotDeleted = Messages.Warning("schedule_snapshots_not_deleted",
		"Expired snapshots of schedule {{.name}} were not deleted",
		"talosop could not delete {{.snapshots}}:{{bullets .causes}}",
		"The next plan shows the rest in `expired`.")
)
