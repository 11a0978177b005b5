package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

// Expired are the keys of the snapshots that a retention lets go, oldest first, and total is how many there are. Only
// those of this schedule and cluster are counted and go, and never the newest.
//
// talos-backup keeps no record, and the key that is in the cluster may put any number of objects, and delete none. So
// turns of the schedule count, by the clock of the store: all snapshots of the newest turns stay, and what is forged
// today takes the place of no snapshot of another day.
func (s Spec) Expired(r backup.Retention, objects []store.Object, now time.Time) (expired []string, total int) {
	var own []backup.Stored

	for _, o := range objects {
		if at, ok := s.TimeOf(o.Key); ok && s.Mark != "" && !at.After(now) {
			if !o.Modified.IsZero() {
				at = o.Modified
			}

			own = append(own, backup.Stored{Object: o, At: at})
		}
	}

	slices.SortFunc(own, func(a, b backup.Stored) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(b.Key, a.Key)) })

	turns := map[time.Time]bool{}

	for _, o := range own {
		turn, known := s.turn(o.At)
		if !known || r.Count <= 0 {
			return nil, len(own)
		}

		if turns[turn] = true; len(turns) > r.Count && now.Sub(o.At) >= r.MinAge {
			expired = append(expired, o.Key)
		}
	}

	slices.Reverse(expired)

	return expired, len(own)
}

// turn is when the turn of a schedule ends that a time is in, which all times of it have in common.
func (s Spec) turn(at time.Time) (time.Time, bool) {
	times, location, err := s.times()
	if err != nil {
		return time.Time{}, false
	}

	// @every counts from any time.
	if every, ok := times.(cron.ConstantDelaySchedule); ok {
		return at.UTC().Truncate(every.Delay), true
	}

	return times.Next(at.In(location)).UTC(), true
}

// NextRun is when a schedule runs next after a time; zero when it is suspended or names no time.
func (s Spec) NextRun(after time.Time) time.Time {
	times, location, err := s.times()
	if err != nil || s.Suspend {
		return time.Time{}
	}

	return times.Next(after.In(location)).UTC()
}

func (s Spec) times() (cron.Schedule, *time.Location, error) {
	location, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, nil, err
	}

	times, err := timetable.ReadCron(s.Schedule)

	return times, location, err
}
