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

	pathExists = Messages.Invalid("support_bundle_exists",
		"Found {{quote .path}}: {{.cause}}.",
		"Allowed: the path of a new file.",
		"Set another path, or set `overwrite = true` to replace a file.")

	bundleIncomplete = Messages.Warning("support_bundle_incomplete",
		"Support bundle {{.path}} is incomplete",
		"{{.path}} is written. These files are missing:{{bullets .missing}}",
		"To collect them, correct the cause and request the bundle again.")
)
