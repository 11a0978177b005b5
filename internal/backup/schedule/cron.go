package schedule

import (
	"errors"
	"fmt"
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

// NextRun is when a schedule runs next after a time; ok is false when it does not run: it is
// suspended, or there is no such time.
func (s Spec) NextRun(after time.Time) (next time.Time, ok bool, err error) {
	if s.Suspend {
		return time.Time{}, false, nil
	}

	location, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read the time zone: %w", err)
	}

	times, err := ReadCron(s.Schedule)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read the schedule: %w", err)
	}

	next = times.Next(after.In(location))

	return next.UTC(), !next.IsZero(), nil
}
