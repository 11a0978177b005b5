package timetable_test

import (
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

func TestWindow_isOpenFromItsBeginToItsEnd(t *testing.T) {
	t.Parallel()

	const saturday = "0 22 * * 6"

	for now, opens := range map[string]string{
		"2026-11-28T21:59:59+01:00": "2026-11-28T22:00:00+01:00",
		"2026-11-28T22:00:00+01:00": "",
		"2026-11-29T01:59:59+01:00": "", // over midnight
		"2026-11-29T02:00:00+01:00": "2026-12-05T22:00:00+01:00",
		// The night in which the clocks are put back.
		"2026-10-24T22:00:00+02:00": "",
		"2026-10-25T01:59:59+02:00": "",
		"2026-10-25T02:00:00+02:00": "2026-10-31T22:00:00+01:00",
	} {
		w, err := timetable.ReadWindow(saturday, 4*time.Hour, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}

		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}

		open, next := w.At(at)
		if open != (opens == "") || !open && next.Format(time.RFC3339) != opens {
			t.Errorf("at %s it is open: %v, and opens %s", now, open, next.Format(time.RFC3339))
		}
	}
}

func TestWindow_thatIsNone(t *testing.T) {
	t.Parallel()

	if open, _ := (timetable.Window{}).At(time.Unix(0, 0)); !open {
		t.Error("no window is closed")
	}

	for length, text := range map[time.Duration]string{4 * time.Hour: "4h", 10 * time.Minute: "10m",
		90 * time.Minute: "1h30m", 100 * time.Second: "1m40s"} {
		if w, err := timetable.ReadWindow("@daily", length, "UTC"); err != nil || w.String() != "@daily for "+text+", UTC" {
			t.Errorf("%s is %q (%v)", length, w, err)
		}
	}

	for name, bad := range map[string]struct {
		cron     string
		duration time.Duration
		zone     string
	}{
		"no cron": {"every saturday", time.Hour, "UTC"}, "counts": {"@every 6h", time.Hour, "UTC"},
		"no zone": {"@daily", time.Hour, "Mars/Base"}, "no time": {"@daily", 0, "UTC"},
		"too long": {"@weekly", 8 * 24 * time.Hour, "UTC"},
	} {
		if _, err := timetable.ReadWindow(bad.cron, bad.duration, bad.zone); err == nil {
			t.Errorf("%s is a window", name)
		}
	}

	never, err := timetable.ReadWindow("0 0 30 2 *", time.Hour, "UTC")
	if open, opens := never.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil || open || !opens.IsZero() {
		t.Errorf("the thirtieth of February is open: %v, opens %s (%v)", open, opens, err)
	}
}
