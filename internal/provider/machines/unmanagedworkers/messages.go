package unmanagedworkers

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the configuration of machines without a resource.
var Messages = finding.NewCatalog("Configuration of unmanaged workers")

var (
	invalidConfig = Messages.Invalid("unmanaged_config_invalid",
		"Found a configuration that does not fit: {{.problem}}.",
		"Allowed: a configuration of workers of this cluster, without a hostname.",
		"Use `config` of a data source talosop_machine_config of the same cluster, without `hostname`.")

	workersNotRead = Messages.Warning("unmanaged_workers_not_read",
		"Unmanaged workers of cluster {{.cluster}} were not read",
		"The Kubernetes API does not list the nodes: {{.cause}}.",
		"State keeps the result of the last read.",
		"Make sure that the cluster works. The next refresh reads them.")

	workersIncomplete = Messages.Error("unmanaged_workers_incomplete",
		"Unable to configure the unmanaged workers of cluster {{.cluster}}",
		"The apply ended early:{{bullets .causes}}",
		"{{if .done}}Finished steps:{{bullets .done}}{{end}}",
		"{{.solution}}",
		"The next plan lists what is left.")
)
