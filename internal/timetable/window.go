package timetable

import (
	"errors"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Window is times of a certain length that come again and again. Its zero value is always open.
type Window struct {
	begins   cron.Schedule
	duration time.Duration
	zone     *time.Location
	text     string
}

// longest is how long a window may be open at once.
const longest = 7 * 24 * time.Hour

// ReadWindow reads when a window begins, how long it is open, and in which time zone that is.
func ReadWindow(expression string, duration time.Duration, zone string) (Window, error) {
	begins, err := ReadCron(expression)
	if err != nil {
		return Window{}, err
	}

	if _, counts := begins.(cron.ConstantDelaySchedule); counts {
		return Window{}, errors.New("@every has no time of day")
	}

	if err := CheckTimeZone(zone); err != nil {
		return Window{}, err
	}

	if duration <= 0 || duration > longest {
		return Window{}, errors.New("the duration of a window must be positive and at most seven days")
	}

	location, err := time.LoadLocation(zone)

	return Window{begins: begins, duration: duration, zone: location,
		text: expression + " for " + short(duration) + ", " + zone}, err
}

// short is a time as people write it: 4h, not 4h0m0s.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}

	return text
}

// String says when the window is open; empty where it always is.
func (w Window) String() string { return w.text }

// IsZero reports whether there is none.
func (w Window) IsZero() bool { return w.begins == nil }

// At reports whether a window is open at a time, and when it opens otherwise; zero where it never does.
func (w Window) At(now time.Time) (open bool, opens time.Time) {
	if w.IsZero() {
		return true, time.Time{}
	}

	// One that began just as long ago as it is open has ended.
	begun := w.begins.Next(now.Add(-w.duration).In(w.zone))
	if !begun.IsZero() && !begun.After(now) {
		return true, time.Time{}
	}

	return false, begun
}
