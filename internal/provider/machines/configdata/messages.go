package configdata

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the data source of machine configurations.
var Messages = finding.NewCatalog("Machine configurations")

var (
	configOfContainer = Messages.Invalid("config_of_container",
		"Found {{quote .mode}}.",
		"Allowed: a cluster on metal. A machine in a container is a pod of the host cluster and reads no user data.",
		"To add workers in containers, use talosop_worker.")

	configUnknown = Messages.Error("config_unknown_values",
		"Unable to render the machine configuration of {{.cluster}}",
		"`clusters` of the provider has values that are unknown before the apply.",
		"Add the source of these values to `depends_on` of the data source, so that the apply reads it. "+
			"Or create that source first with `-target`.")
)
