package etcdbackup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/robfig/cron/v3"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// timetable is when a schedule names, in UTC.
type timetable struct{ cron.Schedule }

// ReadTimetable reads a schedule as Kubernetes does. One with a time zone is refused: it would
// mean another time wherever it runs.
func ReadTimetable(text string) (timetable, error) {
	parsed, err := schedule.ReadCron(text)
	if err != nil {
		// The parser repeats the fields, which the diagnostic shows anyway.
		return timetable{}, errors.New(strings.TrimSuffix(err.Error(), fmt.Sprintf(": %v", strings.Fields(text))))
	}

	t := timetable{parsed}
	if t.after(time.Now()).IsZero() {
		return timetable{}, errors.New("it names no time in the next years")
	}

	return t, nil
}

// after is the first time the schedule names after another one.
func (t timetable) after(at time.Time) time.Time { return t.Next(at.UTC()) }

// InvalidTimetable is the error about a schedule, wherever one is given. zone says how its time
// zone is.
func InvalidTimetable(at path.Path, schedule string, err error, zone string) diag.Diagnostic {
	return tf.Invalid(at, "schedule", "found "+finding.Quote(schedule)+": "+err.Error(),
		"allowed are the five fields of cron (minute, hour, day of the month, month, day of the week), or @hourly, @daily, "+
			"@weekly, @monthly, @every 6h",
		`write "0 3 * * *" for every night at three, `+zone)
}

// cronValidator accepts what ReadTimetable reads.
type cronValidator struct{}

func (cronValidator) Description(context.Context) string {
	return "value must be a cron expression of five fields, or one such as @daily"
}

func (v cronValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (cronValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}

	if _, err := ReadTimetable(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.Append(InvalidTimetable(req.Path, req.ConfigValue.ValueString(), err, "in UTC"))
	}
}
