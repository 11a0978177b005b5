package schedule

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

// NextRun is when a schedule runs next after a time; zero when it does not: it is suspended, there is no such time, or
// schedule and time zone are not what timetable.ReadCron and timetable.CheckTimeZone accept.
func (s Spec) NextRun(after time.Time) time.Time {
	location, err := time.LoadLocation(s.TimeZone)
	if err != nil || s.Suspend {
		return time.Time{}
	}

	times, err := timetable.ReadCron(s.Schedule)
	if err != nil {
		return time.Time{}
	}

	return times.Next(after.In(location)).UTC()
}
