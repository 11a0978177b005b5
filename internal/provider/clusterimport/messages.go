package clusterimport

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about imports of machines.
var Messages = finding.NewCatalog("Import of machines")

var (
	importFailed = Messages.Error("import_failed",
		"Unable to import machines",
		"The import could not {{.attempted}}:{{bullets .causes}}",
		"Nothing was imported, and no machine was changed.",
		"{{if .solution}}{{.solution}}{{else}}Correct the cause, then import again.{{end}}")

	patchesNotWritten = Messages.Warning("import_patches_not_written",
		"Import wrote no patches",
		"talosop could not compare the machine configurations with their settings: {{.cause}}.",
		"The plan shows where machines differ. Write what must stay into the configuration.")

	secretsLeftOut = Messages.Warning("import_secrets_left_out",
		"Import left out secret parts of machine configurations",
		"Patches do not contain these values, because they are or may be secret:{{bullets .places}}",
		"An apply sets them to what the configuration says, and removes values that it does not have.",
		"To keep them out of state, set them in `config_patches` of `clusters` of the provider. Or set them in patches.")
)
