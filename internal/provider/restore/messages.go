package restore

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the snapshot that etcd of a new cluster starts from.
var Messages = finding.NewCatalog("Restore from an etcd snapshot")

// What all errors about a snapshot have in common. The messages are in a catalog, so each starts with these.
const (
	unable      = "Unable to restore etcd of cluster {{.cluster}}"
	notRestored = "Could not restore from {{.from}}: {{.cause}}."
	nothingSent = "Nothing was sent to any machine."
)

var (
	snapshotUntrusted = Messages.Error("snapshot_untrusted", unable, notRestored, nothingSent,
		"Any user with write access to this location can replace the snapshot, and a restored one controls the cluster.",
		"Compare its checksum with `sha256` of talosop_etcd_backup in state, or with a copy that only you can change. "+
			"If it is yours, set `sha256 = {{quote .sha256}}` in `restore_from`.")

	snapshotOtherChecksum = Messages.Error("snapshot_other_checksum", unable, notRestored, nothingSent,
		"Choose the snapshot with this checksum, or correct `sha256`: it is the output of `sha256sum` for the stored "+
			"object or file.")

	snapshotNotEncrypted = Messages.Error("snapshot_not_encrypted", unable, notRestored, nothingSent,
		"Allowed: an age archive.",
		"Choose the encrypted snapshot. For one that was never encrypted, remove `identities_wo` and `passphrase_wo`. If "+
			"its name or record says that it is encrypted, also set its `sha256` in `restore_from`.")

	snapshotMissing = Messages.Error("snapshot_missing", unable, notRestored, nothingSent,
		"Correct the name, or choose another snapshot. "+
			"The data source talosop_etcd_backups lists the snapshots of a cluster.")

	snapshotForeign = Messages.Error("snapshot_foreign", unable, notRestored, nothingSent,
		"Choose a snapshot of this cluster, or set the secrets of the cluster of this snapshot.")

	snapshotLocked = Messages.Error("snapshot_locked", unable, notRestored, nothingSent,
		"Set the identity of one of its recipients in `identities_wo`, or set `passphrase_wo`.")

	snapshotDamaged = Messages.Error("snapshot_damaged", unable, notRestored, nothingSent,
		"This snapshot is not usable. Choose another one.")

	snapshotTooNew = Messages.Error("snapshot_too_new", unable, notRestored, nothingSent,
		"Set `{{.at}}` to that version or a newer one, or choose an older snapshot.")

	snapshotAddresses = Messages.Error("snapshot_addresses_used", unable, notRestored, nothingSent, "{{.solution}}")

	snapshotUnreadable = Messages.Error("snapshot_unreadable", unable, notRestored, nothingSent,
		"{{if .solution}}{{.solution}}{{else}}Correct the cause, then apply again.{{end}}")
)

var (
	emptyPassphrase = Messages.Invalid("empty_passphrase",
		"Found an empty passphrase.",
		"Allowed: the passphrase of the snapshot.",
		"Remove the attribute if the snapshot has no passphrase.")

	invalidChecksum = Messages.Invalid("invalid_sha256",
		"Found {{quote .value}}.",
		"Allowed: 64 hexadecimal digits.",
		"Write the output of `sha256sum` for the stored object or file, or `filesha256(\"etcd.snapshot\")`.")

	noIdentities = Messages.Invalid("no_identities",
		"Found an empty list.",
		"Allowed: one or more identities.",
		"Remove the attribute if the snapshot is not encrypted for recipients.")

	invalidIdentity = Messages.Invalid("invalid_identity",
		"Found a text without an age identity.",
		"Allowed: the line AGE-SECRET-KEY-… that age-keygen wrote, or its whole file.",
		"A text that begins with age1 is a public key, which only encrypts.")

	snapshotNameNotEncrypted = Messages.Invalid("snapshot_name_not_encrypted",
		"Found the snapshot {{quote .name}}, which is not encrypted.",
		"With `{{.given}}`, only an encrypted snapshot is allowed, because anyone can write another one.",
		"Remove `{{.given}}` to use this snapshot, or choose another one.")

	snapshotNameEncrypted = Messages.Invalid("snapshot_name_encrypted",
		"Found the snapshot {{quote .name}}, which is encrypted.",
		"An encrypted snapshot needs the key that decrypts it.",
		"Set `identities_wo` if it was encrypted for recipients, or `passphrase_wo` if it has a passphrase.")
)
