package etcdbackup

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about etcd backups.
var Messages = finding.NewCatalog("etcd backups")

var (
	noControlPlanes = Messages.Invalid("backup_without_endpoints",
		"Found no address.",
		"Allowed: the addresses of control planes.",
		"List at least one address at which the Talos API answers.")

	invalidClusterName = Messages.Invalid("backup_cluster_name",
		"Found {{quote .name}}.",
		"Allowed: a name without slashes, because it is a folder in the location of the backups.",
		"Use the name of the cluster.")

	secretsWithoutEncryption = Messages.Invalid("include_secrets_without_encryption",
		"Found it without `encryption`.",
		"talosop does not store the secrets of a cluster in clear text.",
		"Also set `encryption`.")

	oneEncryption = Messages.Invalid("backup_encryption",
		"Found {{if .both}}both `recipients` and `passphrase_wo`{{else}}neither `recipients` nor `passphrase_wo`{{end}}.",
		"Allowed: exactly one of them.",
		"Set age public keys or a passphrase.")

	emptyPassphrase = Messages.Invalid("empty_backup_passphrase",
		"Found an empty passphrase.", "Allowed: any other text.", "Choose a long passphrase.")

	noRecipients = Messages.Invalid("no_recipients",
		"Found an empty list.", "Allowed: one or more recipients.", "Add a public key that `age-keygen` prints.")

	invalidRecipient = Messages.Invalid("invalid_recipient",
		"Found a text that is not an age public key.",
		"Allowed: a key such as age1…. SSH keys are not supported.",
		"Copy the public key that `age-keygen` prints, not the secret key.")

	invalidRetainCount = Messages.Invalid("invalid_retain_count",
		"Found {{.count}}.",
		"Allowed: 1 to 1000000, because the newest snapshot always stays.",
		"To keep all snapshots, remove `retain`.")

	invalidMinAge = Messages.Invalid("invalid_min_age",
		"Found {{quote .value}}.",
		"Allowed: a duration of 0s or more, such as 168h.",
		"Correct the duration, or remove the attribute.")

	notEncrypted = Messages.Warning("backup_not_encrypted",
		"etcd backups{{if .cluster}} of {{.cluster}}{{end}} are not encrypted",
		"A snapshot of etcd contains every Secret of the cluster. "+
			"Any user who can read the {{if .bucket}}bucket{{else}}folder{{end}} can read them.",
		"Set `encryption` with age recipients or a passphrase.")

	deletedOnDestroy = Messages.Warning("backup_deleted",
		"Snapshot {{.key}} will be deleted",
		"`delete_on_destroy` is true, so this destroy deletes {{.key}} and the files stored with it from {{.place}}.",
		"Earlier snapshots stay.")

	deleteWithoutKey = Messages.Warning("backup_delete_without_key",
		"Destroy of the etcd backup has no access key",
		"`delete_on_destroy` is true, the access key is write-only, and the provider has none. "+
			"A destroy cannot read write-only values, and uses the default credentials of the AWS SDK.",
		"Set the credentials in `s3` of the provider.")

	backupLost = Messages.Warning("backup_lost",
		"Snapshot {{.key}} is {{.status}}",
		"{{.place}} {{if .changed}}has an object with another size or checksum than talosop stored"+
			"{{else}}no longer has this object{{end}}.",
		"The next apply takes a new snapshot.")

	backupNotObserved = Messages.Warning("backup_not_observed",
		"Snapshot {{.key}} was not checked",
		"talosop could not check whether {{.place}} has the snapshot:{{bullets .causes}}",
		"The plan assumes that the snapshot is unchanged.",
		"{{if .solution}}{{.solution}}{{else}}Plan again when the location answers.{{end}}")

	backupNotTaken = Messages.Error("backup_not_taken",
		"Unable to take an etcd backup",
		"talosop could not store a snapshot in {{.place}}:{{bullets .causes}}",
		"Earlier snapshots are unchanged.",
		"{{.solution}}",
		"Applying again is safe.")

	memberUnhealthy = Messages.Warning("backup_member_failed",
		"etcd member of {{.cluster}} could not provide a snapshot",
		"The snapshot was taken from another member and is verified. These members failed:{{bullets .causes}}",
		"Check these members. The data source talosop_cluster_health shows their health.")

	backupsNotRemoved = Messages.Warning("old_backups_not_removed",
		"Old etcd backups in {{.place}} were not removed",
		"The new snapshot is stored, but talosop could not remove the snapshots beyond `retain`:{{bullets .causes}}",
		"{{.solution}}",
		"The next snapshot tries again.")

	retainNotApplied = Messages.Error("retain_not_applied",
		"Unable to remove old etcd backups",
		"talosop could not remove the snapshots beyond `retain` from {{.place}}:{{bullets .causes}}",
		"The newest snapshot is unchanged.",
		"{{.solution}}",
		"Applying again is safe.")

	incompleteNotRemoved = Messages.Warning("incomplete_backups_not_removed",
		"Incomplete etcd backups in {{.place}} were not removed",
		"The new snapshot is stored, but talosop could not remove what interrupted runs left:{{bullets .causes}}",
		"{{if .bucket}}Allow `s3:ListBucketMultipartUploads` and `s3:AbortMultipartUpload`, or let a lifecycle rule of the "+
			"bucket abort incomplete uploads.{{end}}")

	backupNotDeleted = Messages.Error("backup_not_deleted",
		"Unable to delete snapshot {{.key}}",
		"talosop could not delete the snapshot from {{.place}}:{{bullets .causes}}",
		"The snapshot may still be there.",
		"{{.solution}}",
		"{{if .write_only}}The access key of the resource is write-only, so a destroy does not have it. "+
			"Set the credentials in `s3` of the provider.{{end}}",
		"Destroying again is safe. To keep the snapshot, set `delete_on_destroy = false` and apply first.")

	backupNotImported = Messages.Error("backup_not_imported",
		"Unable to import the etcd backup",
		"talosop could not read {{.what}}:{{bullets .causes}}",
		"Nothing was imported or changed.",
		"{{if .solution}}{{.solution}}{{else}}Correct the cause, then import again.{{end}}")

	backupsNotListed = Messages.Error("backups_not_listed",
		"Unable to list etcd backups of {{.cluster}}",
		"talosop could not list the snapshots in {{.place}}:{{bullets .causes}}",
		"{{if .solution}}{{.solution}}{{else if .bucket}}Correct the location or the credentials. The credentials come from "+
			"`s3` of the provider, or from the default chain of the AWS SDK.{{else}}Correct `path` in `file`.{{end}}")

	secretsNotRead = Messages.Error("backup_secrets_not_read",
		"Unable to list etcd backups of {{.cluster}}",
		"talosop could not read the secrets of the cluster:{{bullets .causes}}",
		"Set `secrets_file`, or set the secrets in `clusters` of the provider.")

	folderMissing = Messages.Warning("backup_folder_missing",
		"Backup folder {{.path}} does not exist",
		"The list of backups is empty.",
		"Correct the path, unless the first backup is still to create the folder.")

	backupsDamaged = Messages.Warning("backups_damaged",
		"etcd backups of {{.cluster}} are damaged",
		"`latest` skips these snapshots, and a restore refuses them:{{bullets .snapshots}}",
		"Delete them, or ignore them.")
)
