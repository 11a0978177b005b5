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

	pathExists = Messages.Invalid("support_bundle_exists",
		"Found {{quote .path}}: {{.cause}}.",
		"Allowed: the path of a new file.",
		"Set another path, or set `overwrite = true` to replace a file.")

	bundleIncomplete = Messages.Warning("support_bundle_incomplete",
		"Support bundle {{.path}} is incomplete",
		"{{.path}} is written. These files are missing:{{bullets .missing}}",
		"To collect them, correct the cause and request the bundle again.")
)
