package images

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about images of Talos and the Image Factory.
var Messages = finding.NewCatalog("Images and boot assets")

var (
	invalidImage = Messages.Invalid("invalid_image_part",
		"Found {{.found}}.",
		"Allowed: {{.allowed}}.",
		"Use one of these for this image.")

	invalidSchematic = Messages.Invalid("invalid_schematic",
		"The value is not usable: {{.cause}}.",
		"Allowed: the content of a schematic of the Image Factory, or its ID.",
		"Write YAML with `customization`, for example with `systemExtensions` that lists `officialExtensions`.")

	schematicIDWithAdditions = Messages.Invalid("schematic_id_with_additions",
		"Found the ID of a schematic together with `extensions` or `extra_kernel_args`.",
		"talosop can add these only to the content of a schematic, and an ID does not contain it.",
		"Write the content of the schematic.")

	schematicUnknown = Messages.Invalid("schematic_unknown",
		"Found {{.schematic}}, which the Image Factory at {{.factory}} does not have.",
		"Allowed: the ID of a schematic that it has, or the content of any schematic.",
		"Write the content, which talosop then uploads.")

	schematicWithoutArguments = Messages.Invalid("schematic_without_arguments",
		"The kernel arguments of this schematic are unknown, because it is only an ID or has an overlay.",
		"Allowed: the content of a schematic without an overlay, or any schematic with `online = true`.",
		"Write the content, or set `online = true`.")

	extensionName = Messages.Invalid("extension_without_vendor",
		"Found {{quote .name}}.",
		"Allowed: full names such as siderolabs/{{.name}}.",
		"Write the full name, or set `online = true` to look it up.")

	extensionsUnknown = Messages.Invalid("extensions_unknown",
		"Found {{.extensions}}, which the Image Factory at {{.factory}} does not have for Talos {{.version}}.",
		"Allowed: {{.known}}.",
		"Choose from these.")

	versionUnknown = Messages.Invalid("talos_version_not_in_factory",
		"Found {{.version}}, which the Image Factory at {{.factory}} does not have.",
		"Allowed: {{if .known}}{{.known}}{{else}}the versions that it lists at /versions{{end}}.",
		"Choose one of these.")

	factoryFailed = Messages.Error("factory_request_failed",
		"Unable to query the Image Factory at {{.factory}}",
		"The Image Factory gave no usable answer: {{.cause}}.",
		"Correct the cause, then try again. Without `online = true`, talosop does not query it.")

	invalidProduct = Messages.Invalid("invalid_product",
		"Found {{quote .found}}.",
		"Allowed: talos or kubernetes.",
		"Use one data source for each.")

	invalidVersionBound = Messages.Invalid("invalid_version_bound",
		"Found {{quote .found}}.",
		"Allowed: {{.allowed}}.",
		"Correct the version.")

	talosVersionMissing = Messages.Invalid("kubernetes_without_talos_version",
		"Found no `talos_version`, and `product` is kubernetes.",
		"Each Talos version supports certain Kubernetes versions.",
		"Set the `talos_version` of the machines.")

	talosVersionUnused = Messages.Invalid("talos_version_unused",
		"Found `talos_version`, and `product` is talos.",
		"It only selects Kubernetes releases.",
		"Remove it, or use `minor`, `up_to` or `newer_than`.")

	factoryUnused = Messages.Invalid("factory_url_unused",
		"Found `factory_url` together with {{if .kubernetes}}`product = \"kubernetes\"`{{else}}`repository`{{end}}.",
		"An Image Factory lists only Talos releases, and a repository replaces it.",
		"Remove one of them.")

	invalidRepository = Messages.Invalid("invalid_release_repository",
		"The value is not usable: {{.cause}}.",
		"Allowed: a repository without a tag, such as registry.example.com/siderolabs/installer.",
		"Write the registry and the path of the repository.")

	releasesNotListed = Messages.Error("releases_not_listed",
		"Unable to list {{.product}} releases at {{.url}}",
		"The server gave no usable answer: {{.cause}}.",
		"Check the URL, the proxy (`HTTPS_PROXY`) and, for a registry, `docker login`. If this computer cannot reach the "+
			"server, set `repository` to a mirror. In a `check` block, this error is only a warning.")

	platformWithoutNetboot = Messages.Invalid("platform_without_netboot",
		"Found {{quote .platform}}.",
		"Allowed: platforms that boot over the network, which are {{.allowed}}.",
		"Choose one of these.")

	invalidAssetsURL = Messages.Invalid("invalid_assets_url",
		"Found {{quote .url}}.",
		"Allowed: a URL such as http://10.0.0.2:8080/assets.",
		"Write scheme, host and path.")

	invalidMachineName = Messages.Invalid("invalid_boot_machine_name",
		"Found {{quote .name}}.",
		"Allowed: letters, digits, dots, dashes and underscores.",
		"Choose a name that is also valid for a file.")

	invalidMAC = Messages.Invalid("invalid_mac_address",
		"Found {{quote .value}}.",
		"Allowed: a MAC address such as 52:54:00:12:34:56.",
		"Correct the address.")

	duplicateMAC = Messages.Invalid("duplicate_mac_address",
		"Found the MAC address of {{.other}}.",
		"Each machine has its own MAC address.",
		"Correct one of the two.")

	otherArchitecture = Messages.Invalid("other_architecture_with_overlay",
		"Found {{.architecture}} with a schematic that has an overlay.",
		"Allowed: {{.allowed}}. The Image Factory gave the kernel arguments of this architecture only.",
		"Use another data source for machines of that architecture.")
)
