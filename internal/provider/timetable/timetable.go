// Package timetable is arguments that are times: cron expressions and time zones.
package timetable

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/robfig/cron/v3"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

// Timetable is the times of a schedule, in its time zone.
type Timetable struct {
	cron.Schedule

	zone *time.Location
}

// DefaultZone is the time zone of schedules without one.
const DefaultZone = "UTC"

// Read reads a schedule as Kubernetes does. It refuses one that contains a time zone: that is in time_zone, whose
// validator reports invalid zones.
func Read(text, zone string) (Timetable, error) {
	parsed, err := timetable.ReadCron(text)
	if err != nil {
		// The parser repeats the fields, which the diagnostic shows anyway.
		return Timetable{}, errors.New(strings.TrimSuffix(err.Error(), fmt.Sprintf(": %v", strings.Fields(text))))
	}

	location, err := time.LoadLocation(cmp.Or(zone, DefaultZone))
	if err != nil {
		location = time.UTC
	}

	t := Timetable{parsed, location}
	if t.After(time.Now()).IsZero() {
		return Timetable{}, errors.New("it names no time in the next years")
	}

	return t, nil
}

// After is the first scheduled time after another time.
func (t Timetable) After(at time.Time) time.Time { return t.Next(at.In(t.zone)).UTC() }

// Invalid is the error about a schedule, wherever one is given.
func Invalid(at path.Path, schedule string, err error) diag.Diagnostic {
	return tf.Diagnostic(invalidSchedule.At(
		tf.PathOf(at), finding.Args{"value": schedule, "cause": strings.TrimSuffix(err.Error(), ".")}))
}

// Expression accepts the format of Read.
var Expression = tf.StringCheck{
	Allowed: "value must be a cron expression of five fields, or one such as @daily",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, err := Read(value, ""); err != nil {
			return Invalid(at, value, err)
		}

		return nil
	},
}

// TimeZone accepts names of time zones.
var TimeZone = tf.StringCheck{
	Allowed: "value must be the name of a time zone in the IANA database",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if timetable.CheckTimeZone(value) == nil {
			return nil
		}

		return tf.Diagnostic(invalidTimeZone.At(tf.PathOf(at), finding.Args{"value": value}))
	},
}
