package unmanaged

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about machines that no resource manages.
var Messages = finding.NewCatalog("Unmanaged machines")

var (
	invalidSelector = Messages.Invalid("invalid_label_selector",
		"Found {{quote .value}}{{if .cause}}: {{.cause}}{{end}}.",
		"Allowed: a Kubernetes label selector that is not empty, such as example.com/group=spot.",
		"Write labels that the nodes have in `observed_others`.")

	invalidInstaller = Messages.Invalid("installer_with_digest",
		"Found {{quote .value}}.",
		"Allowed: an image without a digest, such as ghcr.io/siderolabs/installer.",
		"Write the name of the image. Each version on the upgrade path is its tag.")
)
