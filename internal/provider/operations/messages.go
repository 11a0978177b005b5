package operations

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about operations on running machines.
var Messages = finding.NewCatalog("Operations on running machines")

var (
	machineUnknown = Messages.Invalid("operation_machine_unknown",
		"Found {{quote .machine}}.",
		"The cluster has {{.known}}.",
		"Use the address of a machine, or the name of its node.")

	operationFailed = Messages.Error("operation_failed",
		"Unable to finish {{.operation}} of cluster {{.cluster}}",
		"The {{.operation}} of cluster {{quote .cluster}}{{if .machines}} on {{.machines}}{{end}} did not finish:"+
			"{{bullets .causes}}",
		"{{if .state}}State now:{{bullets .state}}{{end}}",
		"{{.solution}}",
		"Finished steps stay finished. Correct the cause, then request the operation again.")

	machineLeaves = Messages.Warning("machine_leaves",
		"{{.machine}} leaves cluster {{.cluster}}",
		"This plan destroys or replaces a talosop_machine_leave. The apply takes {{.machine}} out of cluster "+
			"{{quote .cluster}}{{if .drains}}, with a drain,{{end}} and then {{.then}}. Terraform changes its VM after that.",
		"To keep the machine in its cluster, remove the resource with a `removed` block that has `destroy = false`.")

	leavesContainers = Messages.Invalid("machine_leave_of_containers",
		"Found `mode = \"container\"`.",
		"Allowed: a cluster on metal or VMs. A pod leaves its cluster before talosop deletes it.",
		"To remove machines in pods, change `machines` or `replicas` of their resource.")

	volumeNotWiped = Messages.Invalid("reset_volume_not_wiped",
		"Found {{quote .volume}}{{if .configuration}}, without which the machine has no configuration or no network for "+
			"its return{{end}}.",
		"Allowed: `EPHEMERAL`, `ETCD`, `CRI`, `KUBELET`, `LOG`, and volumes of the machine configuration by their IDs, such "+
			"as `u-data`.",
		"{{if .configuration}}To reset a machine for good, remove it from its resource. {{end}}To list the volumes of a "+
			"machine, run `talosctl get volumestatus`. Whole disks belong in `user_disks`.")

	podsNotWiped = Messages.Invalid("reset_of_pods",
		"The machines of the cluster are pods, which have no partitions and no disks.",
		"Allowed: clusters whose `mode` is `metal`.",
		"To give a machine new volumes, remove it from its resource and add it again.")

	volumesWiped = Messages.Warning("volumes_wiped",
		"Data on machines is wiped: {{brief .machines}}",
		"The apply wipes {{if .volumes}}{{.volumes}}{{end}}{{if and .volumes .disks}} and {{end}}{{if .disks}}the "+
			"{{plural .disks \"disk\" \"disks\"}} {{.disks}}{{end}} of {{.machines}}.",
		"{{if .etcd}}Local data of pods, images and logs are lost. A control plane leaves etcd first, and joins it again "+
			"without data. {{end}}All other volumes stay: `STATE` with the machine configuration, `META`, and user, raw and "+
			"existing volumes{{if .disks}} on other disks{{end}}.")

	pathExists = Messages.Invalid("support_bundle_exists",
		"Found {{quote .path}}: {{.cause}}.",
		"Allowed: the path of a new file.",
		"Set another path, or set `overwrite = true` to replace a file.")

	bundleIncomplete = Messages.Warning("support_bundle_incomplete",
		"Support bundle {{.path}} is incomplete",
		"{{.path}} is written. These files are missing:{{bullets .missing}}",
		"To collect them, correct the cause and request the bundle again.")
)
