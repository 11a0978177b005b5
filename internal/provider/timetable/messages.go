package timetable

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about cron expressions and time zones.
var Messages = finding.NewCatalog("Schedules and time zones")

var (
	invalidSchedule = Messages.Invalid("invalid_schedule",
		"Found {{quote .value}}: {{.cause}}.",
		"Allowed: the five fields of cron (minute, hour, day of the month, month, day of the week), or @hourly, @daily, "+
			"@weekly, @monthly, @every 6h.",
		"For every night at three, write \"0 3 * * *\". Set the time zone in `time_zone`.")

	invalidTimeZone = Messages.Invalid("invalid_time_zone",
		"Found {{quote .value}}.",
		"Allowed: a name of the IANA database, such as Europe/Berlin or Etc/UTC.",
		"Correct the name, or remove the attribute for "+DefaultZone+".")
)
