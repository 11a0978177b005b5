package rollout

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about how changes roll out over machines.
var Messages = finding.NewCatalog("Rollout of changes")

var (
	invalidBudget = Messages.Invalid("invalid_max_unavailable",
		"Found {{quote .value}}.",
		"Allowed: a number of at least 1, or a percentage from \"1%\" to \"100%\".",
		"To change one worker at a time, remove the attribute.")

	invalidDuration = Messages.Invalid("invalid_time_limit",
		"Found {{quote .value}}.",
		"Allowed: a duration above 0s, such as 90s, 10m or 1h30m.",
		"Write a number with a unit.")

	releaseTwice = Messages.Invalid("two_releases_of_a_minor",
		"Found v{{.version}} and v{{.other}}.",
		"Allowed: one release of each minor version.",
		"Remove one of the two.")

	invalidWindow = Messages.Invalid("invalid_window_cron",
		"Found {{quote .value}}: {{.cause}}.",
		"Allowed: the five fields of cron: minute, hour, day of the month, month, day of the week.",
		"For every Saturday at 22:00, write \"0 22 * * 6\". Set the time zone in `time_zone`.")

	invalidWindowDuration = Messages.Invalid("invalid_window_duration",
		"Found {{quote .value}}.",
		"Allowed: a duration of at most seven days, such as 90m or 4h.",
		"Write how long the window is open.")

	diskNotAPath = Messages.Invalid("reset_disk_not_a_path",
		"Found {{quote .disk}}.",
		"Allowed: the path of a disk in `/dev`, such as `/dev/sdb`. Talos resolves no links, such as those below "+
			"`/dev/disk`.",
		"To list the disks of a machine, run `talosctl get disks`.")
)
