package settings

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about settings of machines.
var Messages = finding.NewCatalog("Settings")

var nullInMap = Messages.Invalid("null_in_map",
	"Found null.",
	"Allowed: a string. A null does not remove the value of the pool or the cluster.",
	"Remove the key, for example with an if clause in a for expression.")
