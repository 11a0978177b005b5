package secrets

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the secrets of clusters.
var Messages = finding.NewCatalog("Secrets")

// Parts of the messages about secrets that leave state.
const (
	bundleLost = "The bundle of cluster ID {{quote .id}} leaves state. Without a copy of it, no client can read, change " +
		"or reset machines that still run with it. No snapshot of their etcd can be restored. This includes machines that " +
		"were preserved (`on_destroy = \"preserve\"`) or removed from state."
	stillRunning = "{{if .machines}}These machines still run with it:{{bullets .machines}}{{end}}"

	// saveFirst finds the bundle by the ID of its cluster, whatever its address, and does not show it. The CLIs do not
	// wrap a line that starts with spaces.
	saveFirst = "Save it to a file first, with `terraform` or `tofu`.\n    (umask 077; terraform state pull | jq -er " +
		"'first(.. | objects | select(.cluster_id == {{quote .id}}) | .bundle // empty)' > secrets.yaml)"
)

var (
	secretsProtected = Messages.Error("secrets_protected",
		"Deletion protection of talosop_secrets {{.id}} is enabled",
		"talosop_secrets {{quote .id}} would be {{.operation}}, and its `deletion_protection` is true.",
		"Nothing was changed.",
		"To remove it, set `deletion_protection = false` and apply. Then plan the removal again.",
		"Machines that run with this bundle accept only clients that have a copy of it.",
		"The configuration cannot change a deposed object: save its bundle, run `state rm` with its address, and import the "+
			"file that has the bundle of the machines.",
		saveFirst)

	secretsWillBeLost = Messages.Warning("secrets_will_be_lost",
		"Secrets of cluster {{quote .id}} will be lost", bundleLost, stillRunning, saveFirst)

	secretsLost = Messages.Warning("secrets_lost",
		"Secrets of cluster {{quote .id}} are no longer in state", bundleLost, stillRunning,
		"The state before this run still has it: terraform.tfstate.backup next to a local state, or the previous version "+
			"in the backend.")

	rotationUnfinished = Messages.Error("rotation_unfinished",
		"Rotation of {{.keys}} is not finished",
		"{{.keys}} {{plural .keys \"is\" \"are\"}} already being rotated. "+
			"Another rotation would remove a key that machines may still use.",
		"Set `rotate` to its previous value, and apply until the plan is empty. Then rotate again.")

	rotationFailed = Messages.Error("rotation_failed",
		"Unable to rotate keys", "talosop could not create the new keys: {{.cause}}.", "No key was changed. Apply again.")

	secretsUnreadable = Messages.Error("secrets_unreadable",
		"Unable to read secrets",
		"The bundle in state is not valid: {{.cause}}.",
		"State keeps the bundle.",
		"Restore the state from a backup, or import the secrets again from a file.")

	secretsNotGenerated = Messages.Error("secrets_not_generated",
		"Unable to generate secrets", "talosop could not create the keys: {{.cause}}.", "Nothing was stored. Apply again.")

	secretsNotImported = Messages.Error("secrets_not_imported",
		"Unable to import secrets",
		"The import ID does not name a file with usable secrets:{{bullets .causes}}",
		"Give the path of a file that `talosctl gen secrets` wrote, of the configuration of a control-plane machine, or of "+
			"the Secret of talos-operator or Cluster API.")

	secretsNotMoved = Messages.Error("secrets_not_moved",
		"Unable to move secrets",
		"talosop could not read the state of talos_machine_secrets: {{.cause}}.",
		"Nothing was moved.",
		"Correct the source of the `moved` block, or import the secrets from a file.")
)
