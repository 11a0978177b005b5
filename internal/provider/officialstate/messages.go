package officialstate

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about resources of the official Talos provider.
var Messages = finding.NewCatalog("Moves from the official provider")

var machineNotMoved = Messages.Error("machine_not_moved",
	"Unable to move a machine from {{.type}}",
	"talosop could not read the state of {{.type}}: {{.cause}}.",
	"Nothing was moved.",
	"Correct the source of the `moved` block, or import the machine.")
