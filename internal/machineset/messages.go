package machineset

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are those about the machines of a resource. This file has the effects of a plan or a destroy,
// messages_changes.go the refused changes, messages_observed.go what a refresh observes, and messages_settings.go the
// settings.
var Messages = finding.NewCatalog("Machines")

// ofCluster names the cluster where a plan may not know it yet.
const ofCluster = "{{if .cluster}} of cluster {{.cluster}}{{end}}"

// wipedAndKept lists what resets wipe, and what stays.
const wipedAndKept = "{{if .wiped}}Wiped:{{bullets .wiped}}{{end}}{{if .kept}}User volumes that stay:" +
	"{{bullets .kept}}{{end}}"

// Machines that a plan takes out of service.
var (
	machinesReboot = Messages.Warning("machines_reboot",
		"Machines of cluster {{.cluster}} {{if .containers}}restart{{else}}reboot{{end}}: {{brief .machines}}",
		"{{if .drained}}Drained first, and uncordoned afterward: {{.drained}}.{{end}}",
		"{{if .undrained}}Without a drain: {{.undrained}}.{{end}}",
		"At most one control plane is out of service at a time, and workers follow `max_unavailable` of their pool. "+
			"`operations` lists the order.")

	onlyControlPlaneReboots = Messages.Warning("only_control_plane_reboots",
		"Kubernetes API of cluster {{.cluster}} becomes unavailable",
		"{{.machine}} is the only control plane. The API does not answer while it "+
			"{{if .containers}}restarts{{else}}reboots{{end}}.",
		"Pods on workers keep running.",
		"With three control planes, the API stays available.")

	etcdRestored = Messages.Warning("etcd_restored",
		"etcd of cluster {{.cluster}} starts from a snapshot",
		"No control plane has etcd data. etcd starts from {{.snapshot}}{{if .taken}}, taken at {{.taken}}{{end}}.",
		"Later changes to Kubernetes are lost. Workers stop pods that the snapshot does not have, and start pods that it "+
			"has.")

	etcdMembersRemoved = Messages.Warning("etcd_members_removed",
		"etcd members of cluster {{.cluster}} are removed: {{brief .machines}}",
		"The etcd data of {{.machines}} is gone with the machine or its configuration.",
		"The other control planes remove {{plural .machines \"its member\" \"their members\"}} from etcd.")

	extensionsRemoved = Messages.Warning("extensions_removed",
		"Talos upgrade removes system extensions of {{brief .machines}}",
		"The upgrade of {{.machines}} installs images without these system extensions, which run now:"+
			"{{bullets .extensions}}",
		"Workloads that need them stop working. To keep them, set `schematic` or an installer image that has them.")

	extensionsChange = Messages.Warning("extensions_change",
		"Talos upgrade changes system extensions of {{brief .machines}}",
		"The configuration has only the ID of the new schematic. With its content in the Image Factory, these system "+
			"extensions come (+) and go (-):{{bullets .extensions}}",
		"{{if .removed}}Workloads that need those that go stop working. {{end}}If `schematic` has the content instead of "+
			"the ID, `operations` shows this, too.")

	rejoinEnabled = Messages.Warning("rejoin_enabled",
		"`rejoin` is still enabled for {{brief .machines}}",
		"`rejoin` is true for {{.machines}}, which {{plural .machines \"is\" \"are\"}} in service.",
		"If such a machine waits in maintenance mode again, any machine at its address gets its configuration. "+
			"The configuration has the keys of the cluster.",
		"Remove `rejoin`.")

	maintenanceUnreachable = Messages.Warning("maintenance_unreachable",
		"Machines"+ofCluster+" must get their configuration from you: {{brief .machines}}",
		"Control planes cannot proxy to machines in maintenance mode, and {{.machines}} "+
			"{{plural .machines \"has\" \"have\"}} no `maintenance_address`.",
		"The apply waits until {{plural .machines \"it joins\" \"they join\"}} the cluster.",
		"Boot {{plural .machines \"it\" \"each\"}} with the configuration from `talosop_machine_config`, as user data or "+
			"in the image. Or set `maintenance_address`, and Terraform connects to it directly.")
)

// Machines that leave.
var (
	machinesWiped = Messages.Warning("machines_wiped",
		"Machines of cluster {{.cluster}} are wiped: {{brief .machines}}",
		"{{.machines}} {{plural .machines \"leaves\" \"leave\"}} the cluster.",
		"{{if .drained}}Drained first: {{.drained}}.{{end}}",
		"{{if .undrained}}Without a drain: {{.undrained}}.{{end}}",
		"Each machine is reset, and its node is deleted from Kubernetes.",
		wipedAndKept,
		"Until then, {{plural .machines \"the machine\" \"the machines\"}} must answer. For VMs of the same "+
			"configuration, set `create_before_destroy` in their `lifecycle`.",
		"Otherwise Terraform destroys the VMs first"+
			"{{if .lost}}, and etcd loses its quorum with {{.lost}} of its {{.members}} members{{end}}.")

	machinesDeleted = Messages.Warning("machines_deleted",
		"Machines of cluster {{.cluster}} are deleted: {{brief .machines}}",
		"{{.machines}} {{plural .machines \"leaves\" \"leave\"}} the cluster.",
		"{{if .drained}}Drained first: {{.drained}}.{{end}}",
		"{{if .undrained}}Without a drain: {{.undrained}}.{{end}}",
		"Each machine is deleted with its volumes, and its node is deleted from Kubernetes.")

	clusterDestroyed = Messages.Warning("cluster_destroyed",
		"Cluster {{.cluster}} and its etcd are destroyed",
		"Cluster {{quote .cluster}} ends, and its machines are {{if .containers}}deleted{{else}}wiped{{end}}. "+
			"Based on the recorded state, the steps are:{{bullets .steps}}",
		wipedAndKept)

	machinesDestroyed = Messages.Warning("machines_destroyed",
		"Machines of cluster {{.cluster}} are {{if .containers}}deleted{{else}}wiped{{end}}: {{brief .machines}}",
		"{{.machines}} {{plural .machines \"leaves\" \"leave\"}} cluster {{quote .cluster}}. "+
			"Based on the recorded state, the steps are:{{bullets .steps}}",
		wipedAndKept)

	machinesOfOthers = Messages.Warning("machines_of_others",
		"Machines belong to another resource: {{brief .machines}}",
		"By the marks on their nodes, another resource owns {{.machines}}. It can be in another state.",
		"Nothing is sent to {{plural .machines \"this machine\" \"these machines\"}}. This resource only removes "+
			"{{plural .machines \"it\" \"them\"}} from its state.")

	machinesRelinquished = Messages.Warning("machines_relinquished",
		"Machines were left to another resource: {{brief .machines}}",
		"{{.machines}} {{plural .machines \"has\" \"have\"}} the mark of another resource, which took "+
			"{{plural .machines \"it\" \"them\"}} over. It can be in another state.",
		"{{plural .machines \"The machine was\" \"The machines were\"}} not changed, and this resource removed "+
			"{{plural .machines \"it\" \"them\"}} from its state.")

	machinesNotReset = Messages.Warning("machines_not_reset",
		"Machines were not reset: {{brief .machines}}",
		"Nothing could be sent to {{.machines}}, which left the cluster:{{bullets .reasons}}",
		"They still have the configuration and the secrets of the cluster. Wipe their disks before you start them again.")

	resetNotFinished = Messages.Warning("reset_not_finished",
		"Machines did not return from their reset: {{brief .machines}}",
		"{{.machines}} accepted the reset and did not return before the apply ended:{{bullets .reasons}}",
		"Check each machine. One with slow firmware can still be booting, and then waits in maintenance mode.",
		"If a machine starts with its old configuration, it was not wiped. Run `talosctl reset` on it, or wipe its disks.")

	wipeFailed = Messages.Warning("wipe_failed",
		"Talos failed to wipe machines: {{brief .machines}}",
		"{{.machines}} left the cluster and {{plural .machines \"waits\" \"wait\"}} in maintenance mode. The reset failed "+
			"to wipe these volumes and disks, which have the same content as before:{{bullets .left}}",
		"This data can include secrets and keys of the cluster. No later apply or destroy wipes it, because the "+
			"{{plural .machines \"machine is\" \"machines are\"}} out of the cluster.",
		"Wipe it before you give the disks away or use them again. To find the devices, run "+
			"`talosctl get discoveredvolumes --insecure --nodes ADDRESS`. Then run "+
			"`talosctl wipe disk sdb --insecure --nodes ADDRESS` with the name of each device. The console or the logs of the "+
			"machine have the reason of the failure.")

	unmanagedNodesStay = Messages.Warning("unmanaged_nodes_stay",
		"Nodes without a resource stay in cluster {{.cluster}}",
		"Based on the recorded state, {{.count}} {{plural .count \"node\" \"nodes\"}} of cluster {{quote .cluster}} "+
			"{{plural .count \"belongs\" \"belong\"}} to no resource: {{brief .nodes}}.",
		"Nothing is sent to their machines, which keep the configuration and the secrets of the cluster. "+
			"{{if .others}}They stay nodes of the remaining control planes.{{else}}They have no API server once the control "+
			"planes are gone.{{end}}",
		"Stop what creates these nodes, such as an autoscaler or an instance group, and delete them there.")

	protectionDisabled = Messages.Warning("deletion_protection_disabled",
		"Deletion protection of cluster {{.cluster}} is switched off",
		"After this apply, a plan can destroy or replace the resource. A plan with `-replace` does not list what it "+
			"removes.",
		"{{.loss}}")

	lastControlPlaneProtected = Messages.Error("deletion_protection_last_plane",
		"Deletion protection of {{.kind}} {{.id}} is enabled",
		"{{.kind}} {{quote .id}} would be {{.operation}}, and its `deletion_protection` is true. It is the only control "+
			"plane in `talos_endpoints` of its cluster.",
		"Nothing was changed.",
		"To replace it, first apply another control plane that joins the cluster. To remove it, set "+
			"`deletion_protection = false` and apply. Then plan the removal again.")
)

// When a plan can be applied.
var (
	windowClosed = Messages.Error("window_closed",
		"Maintenance window of cluster {{.cluster}} is closed",
		"The plan takes {{.machines}} out of service.",
		"The maintenance window ({{.window}}) is closed. {{if .opens}}It opens at {{.opens}}.{{else}}It never opens.{{end}}",
		"Plan again when it is open. Or set `outside = \"wait\"`, and the apply waits for it.")

	windowAwaited = Messages.Warning("window_awaited",
		"Maintenance window of cluster {{.cluster}} is closed: {{brief .machines}}",
		"The maintenance window ({{.window}}) is closed. {{if .opens}}It opens at {{.opens}}.{{else}}It never opens.{{end}}",
		"Until then, the apply takes no machine out of service. These wait: {{.machines}}.",
		"If `timeouts` end the apply before the window opens, it fails once nothing else is left to do.")

	changeRefused = Messages.Error("change_refused",
		"Unsupported change of {{if .machines}}{{plural .machines \"machine\" \"machines\"}} {{brief .machines}}"+
			"{{else}}cluster {{.cluster}}{{end}}",
		"{{.reason}}",
		"The apply would not change any machine.",
		"{{.remedy}}")

	refusedAfterWait = Messages.Warning("refused_after_wait",
		"Apply of cluster {{.cluster}} is refused later{{if .machines}}: {{brief .machines}}{{end}}",
		"{{.reason}}",
		"The apply refuses this once it no longer waits for something else.",
		"{{.remedy}}")

	refusedAlready = Messages.Warning("refused_already",
		"Apply of cluster {{.cluster}} is refused{{if .machines}}: {{brief .machines}}{{end}}",
		"{{.reason}}",
		"The change in this plan is not the cause, and the apply fails with the same error.",
		"{{.remedy}}")

	applyWaits = Messages.Warning("apply_waits",
		"Apply of cluster {{.cluster}} waits{{if .machines}}: {{brief .machines}}{{end}}",
		"Based on the recorded state, this apply cannot finish until these conditions change:{{bullets .reasons}}",
		"It waits for them until its timeout (`timeouts`), and then continues. `operations` and `impact` include what "+
			"follows.")

	planIncomplete = Messages.Warning("plan_incomplete",
		"Plan"+ofCluster+" is not completely known{{if .machines}}: {{brief .machines}}{{end}}",
		"Some values are unknown until the apply:{{bullets .unknown}}",
		"If existing values stay the same, the apply does this:{{bullets .operations}}",
		"The apply plans again when it knows the values. To see the rest first, apply their sources with `-target`.")
)
