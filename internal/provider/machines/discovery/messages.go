package discovery

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about lists of machines in a network.
var Messages = finding.NewCatalog("Lists of machines")

var (
	noTargets = Messages.Invalid("list_without_targets",
		"Found neither `addresses` nor `networks`.",
		"Allowed: at least one of them.",
		"Set where to look for machines.")

	invalidHost = Messages.Invalid("invalid_list_address",
		"Found {{quote .address}}.",
		"Allowed: an IP address or a hostname, without scheme, port or brackets.",
		"Correct the address: {{.hint}}.")

	invalidNetwork = Messages.Invalid("invalid_list_network",
		"Found {{quote .network}}.",
		"Allowed: a network in CIDR notation.",
		"Write it as 10.0.0.0/24 or fd00::/120.")

	tooManyAddresses = Messages.Invalid("too_many_addresses",
		"Found {{.count}} addresses.",
		"Allowed: {{.limit}}, the value of `max_addresses`.",
		"Use smaller networks, or raise `max_addresses`.")

	secretsNotRead = Messages.Error("list_secrets_not_read",
		"Unable to list machines",
		"talosop could not read the secrets of a cluster:{{bullets .causes}}",
		"No machine was queried.",
		"Correct `cluster`, the name of one of `clusters` of the provider, or `secrets_file`, the path of a file. "+
			"Without secrets, the list shows members as those of other clusters.")

	scanFailed = Messages.Error("list_scan_failed",
		"Unable to list machines",
		"The query of the addresses failed: {{.cause}}.",
		"Correct the cause, then query again.")

	addressesSilent = Messages.Warning("list_addresses_silent",
		"No machine answers at some addresses",
		"talosop got no usable answer from these addresses:{{bullets .addresses}}",
		"A machine there may be switched off.")
)
