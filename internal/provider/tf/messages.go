package tf

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about values of all resources.
var Messages = finding.NewCatalog("Values")

var (
	blankText = Messages.Error("blank_text",
		"Invalid {{.name}}",
		"{{.problem}}",
		"Set a value, or use null for no value.")

	invalidDuration = Messages.Invalid("invalid_duration",
		"Found {{quote .value}}.",
		"Allowed: a duration such as 90s, 1h30m or 168h.",
		"Write hours, minutes and seconds. There is no unit for days: 7 days are 168h.")

	invalidReadTimeout = Messages.Invalid("invalid_read_timeout",
		"Found {{quote .value}}.",
		"Allowed: a duration above zero, such as 10s or 1m.",
		"Set the time that the answers may take.")
)
