package machineset

import (
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

// saturdays is a window of four hours every Saturday at ten in the evening.
func saturdays(t *testing.T) timetable.Window {
	t.Helper()

	w, err := timetable.ReadWindow("0 22 * * 6", 4*time.Hour, "UTC")
	if err != nil {
		t.Fatal(err)
	}

	return w
}

var (
	inWindow     = time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC)
	beforeWindow = time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC)
	opens        = time.Date(2026, 11, 28, 22, 0, 0, 0, time.UTC)
)

func TestWindowAt_refusesWhatOpensAfterTheRun(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		now, ends time.Time
		refuses   bool
		want      cluster.Window
	}{
		"open":                 {now: inWindow, want: cluster.Window{}},
		"open, and refuses":    {now: inWindow, refuses: true, want: cluster.Window{}},
		"opens within the run": {now: beforeWindow, ends: opens.Add(time.Hour), want: cluster.Window{Closed: true, Opens: opens}},
		"opens after the run": {now: beforeWindow, ends: opens.Add(-time.Hour),
			want: cluster.Window{Closed: true, Opens: opens, Refuses: true}},
		"a run without an end": {now: beforeWindow, want: cluster.Window{Closed: true, Opens: opens}},
		"refuses": {now: beforeWindow, refuses: true, want: cluster.Window{Closed: true, Opens: opens,
			Refuses: true}},
	} {
		changes := Changes{Window: saturdays(t), RefusesOutside: c.refuses}
		if got := changes.WindowAt(c.now, c.ends); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestOutsideWindow_onlyOfWhatDisrupts(t *testing.T) {
	t.Parallel()

	reboots := Forecast{Impact: Impact{Rebooted: []string{"w-1"}, Drained: []string{"w-1"}}}

	for name, c := range map[string]struct {
		now      time.Time
		refuses  bool
		f        Forecast
		want     finding.Severity
		reported bool
	}{
		"open":                  {now: inWindow, f: reboots},
		"closed, and waits":     {now: beforeWindow, f: reboots, reported: true, want: finding.Warning},
		"closed, and refuses":   {now: beforeWindow, f: reboots, refuses: true, reported: true, want: finding.Error},
		"closed for what is no": {now: beforeWindow, refuses: true, f: Forecast{Impact: Impact{Upgraded: []string{"w-1"}}}},
	} {
		p := Set{Changes: Changes{Window: saturdays(t), RefusesOutside: c.refuses}}

		got := p.OutsideWindow(c.now, c.f)
		if len(got) > 0 != c.reported {
			t.Fatalf("%s: %v", name, got)
		}

		if c.reported && (got[0].Severity != c.want || !strings.Contains(got[0].Detail, "2026-11-28T22:00:00Z") ||
			!strings.Contains(got[0].Detail, "w-1")) {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}
