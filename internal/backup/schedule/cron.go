package schedule

import (
	"errors"
	"strings"
	"time"
	_ "time/tzdata" // the computer that runs Terraform may have none, and API servers bring theirs, too

	"github.com/robfig/cron/v3"
)

// ReadCron reads a cron expression as the API server does (Kubernetes 1.36, pkg/apis/batch/validation,
// validateScheduleFormat), which asks the same parser. One with a time zone in it is refused.
func ReadCron(expression string) (cron.Schedule, error) {
	if strings.Contains(expression, "TZ") {
		return nil, errors.New("it has a time zone in it")
	}

	return cron.ParseStandard(expression)
}

// CheckTimeZone says what is wrong with the name of a time zone (Kubernetes 1.36,
// validateTimeZone).
func CheckTimeZone(name string) error {
	if strings.EqualFold(name, "local") || name == "" {
		return errors.New("it names no time zone")
	}

	if _, err := time.LoadLocation(name); err != nil {
		return err
	}

	return nil
}

// NextRun is when a schedule runs next after a time; zero when it does not: it is suspended, there is no such time, or
// schedule and time zone are not what ReadCron and CheckTimeZone accept.
func (s Spec) NextRun(after time.Time) time.Time {
	location, err := time.LoadLocation(s.TimeZone)
	if err != nil || s.Suspend {
		return time.Time{}
	}

	times, err := ReadCron(s.Schedule)
	if err != nil {
		return time.Time{}
	}

	return times.Next(after.In(location)).UTC()
}
