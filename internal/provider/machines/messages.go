package machines

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are those about runs on machines. The details of the first ones follow a report: they say what to do next.
var Messages = finding.NewCatalog("Machines")

const applyAgain = "Applying again is safe: talosop observes each machine first and continues where this run stopped."

var (
	createFailed = Messages.Error("create_failed",
		"Unable to create {{.object}}",
		"{{.remedy}}",
		"{{if .consent}}The secrets are older than the next plan. If no cluster has them, set `allow_bootstrap = true` "+
			"for it.{{end}}")

	createTainted = Messages.Error("create_tainted",
		"Unable to finish the create of {{.object}}",
		"The resource is tainted, because `on_incomplete` is \"error\": the next apply would reset its machines and begin "+
			"again.",
		"{{.remedy}} To continue instead, `untaint` it and apply again.")

	createIncomplete = Messages.Warning("create_incomplete",
		"Incomplete create of {{.object}}",
		"{{.remedy}}",
		"{{if .again}}"+applyAgain+" Run `terraform apply` or `tofu apply`.{{end}}")

	updateFailed = Messages.Error("update_failed",
		"Unable to update {{.object}}",
		"{{.remedy}}",
		"{{if .again}}"+applyAgain+"{{end}}")

	destroyFailed = Messages.Error("destroy_failed",
		"Unable to destroy {{.object}}",
		"{{.remedy}}",
		"Destroying again is safe: machines that were reset are left alone. To give up machines that are gone for good or "+
			"were exchanged, set `on_destroy = \"preserve\"` and apply. The apply stores it even without the machines. Then "+
			"destroy again.")

	hostSilent = Messages.Error("host_silent",
		"Unable to {{.verb}} {{.object}}",
		"Check that the host cluster answers, and that `host` of the resource or of the provider leads to it. Then try "+
			"again.",
		"{{if .destroys}}If the host cluster and its machines are gone for good, remove the resource from state "+
			"(`terraform state rm`).{{end}}")

	startFailed = Messages.Error("start_failed",
		"Unable to {{.verb}} {{.object}}",
		"Correct the cause.",
		"Then apply again.")

	notConfirmed = Messages.Error("not_confirmed",
		"Unable to confirm that {{.object}} is Ready",
		"Nothing was sent to any machine.",
		"The next plan lists what it waits for. Apply again.")

	consentReminder = Messages.Warning("allow_bootstrap_reminder",
		"allow_bootstrap of {{.object}} is still enabled",
		"The cluster has an etcd. With `allow_bootstrap = true`, an apply after a loss of the state may bootstrap a second "+
			"one.",
		"Remove `allow_bootstrap`.")

	restoredEarlier = Messages.Warning("restored_earlier",
		"The etcd of cluster {{.cluster}} already began with a snapshot",
		"The etcd began with a snapshot at {{.time}}, before this run. The run takes it for {{.snapshot}}: an interrupted "+
			"run leaves that.",
		"If it was another snapshot, `restored_from` does not name the content of the cluster.")

	anonymousSnapshot = Messages.Warning("snapshot_without_cluster",
		"The snapshot of cluster {{.cluster}} does not name its cluster",
		"The etcd began with {{.snapshot}}. It has no cluster in its name and no record beside it, like a snapshot of "+
			"`talosctl etcd snapshot`.",
		"If it comes from a cluster with other secrets, Kubernetes cannot read its Secrets, and the tokens in it are "+
			"invalid.")

	pendingKeys = Messages.Warning("keys_pending",
		"The key rotation of cluster {{.cluster}} waits for other nodes",
		"Apply again after you applied the resources of these nodes.",
		"A node that talosop did not make holds the rotation. Put its keys into its annotation {{.annotation}}.")

	keptRunning = Messages.Warning("machines_keep_running",
		"Machines of {{.kind}} {{.id}} keep running",
		"{{.kind}} {{quote .id}} was removed from state, and `on_destroy` is \"preserve\".",
		"These machines of cluster {{quote .cluster}} keep running: {{.machines}}.",
		"To bring them back under talosop, {{.back}}.")

	workersLeft = Messages.Warning("workers_left_on_host",
		"Workers stay on the host cluster in namespace {{.namespace}}",
		"The control planes and their cluster are gone. The workers {{.machines}} are still in the namespace, so it stays "+
			"too.",
		"To remove them: `kubectl delete statefulsets,services,networkpolicies,persistentvolumeclaims -n {{.namespace}} "+
			"-l {{.selector}}`.")

	volumesDiffer = Messages.Warning("volumes_differ",
		"Volumes of {{.object}} differ and stay as they are",
		"The host cluster does not allow this change of volume claims, and other claims would be empty.",
		"A claim of another size or class than configured stops each apply that changes the machines.{{bullets .claims}}")

	notRead = Messages.Warning("machines_not_read",
		"Machines of cluster {{.cluster}} were not read",
		"The secrets of the cluster are in the configuration of the provider, and unknown before the apply.",
		"State keeps the last values.")
)
