// Package timetable is times that people write down: cron expressions and time zones, and the windows of time that
// begin with them. Who asks says what time it is: it is pure.
package timetable

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
		return nil, errors.New("a cron expression cannot contain a time zone")
	}

	return cron.ParseStandard(expression)
}

// CheckTimeZone says what is wrong with the name of a time zone (Kubernetes 1.36,
// validateTimeZone).
func CheckTimeZone(name string) error {
	if strings.EqualFold(name, "local") || name == "" {
		return errors.New("not the name of a time zone")
	}

	if _, err := time.LoadLocation(name); err != nil {
		return err
	}

	return nil
}
