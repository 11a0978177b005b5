package machineinfo

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the data source of one machine.
var Messages = finding.NewCatalog("Machine information")

var (
	invalidAddress = Messages.Invalid("invalid_machine_address",
		"Found {{quote .address}}.",
		"Allowed for a machine: an IP address or a hostname, with or without a port, and without a scheme.",
		"Correct the address: {{.hint}}.")

	machineNotRead = Messages.Error("machine_not_read",
		"Unable to read the machine at {{.address}}",
		"The machine gave no answer that talosop can use: {{.cause}}.",
		"A member of a cluster answers only with its handle in `cluster`. "+
			"Any other machine must be in maintenance mode.")

	noCredentials = Messages.Error("machine_credentials_failed",
		"Unable to read the machine at {{.address}}",
		"talosop could not issue credentials for the Talos API: {{.cause}}.",
		"Check `secrets` of the cluster.")

	noRoute = Messages.Error("machine_route_failed",
		"Unable to read the machine at {{.address}}",
		"talosop has no connection to the host cluster of the machine: {{.cause}}.",
		"Correct `host` of the cluster or of the provider.")
)
