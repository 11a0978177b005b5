package schedule

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Expired are the keys of the snapshots that a retention lets go, oldest first, and total is how many there are. Only
// those of this schedule and cluster are counted and only they go, and never the newest.
func (s Spec) Expired(r backup.Retention, objects []store.Object, now time.Time) (expired []string, total int) {
	var own []backup.Stored

	for _, o := range objects {
		if at, ok := s.TimeOf(o.Key); ok && s.Mark != "" {
			own = append(own, backup.Stored{Object: o, At: at})
		}
	}

	return r.ExpiredOf(own, "", now), len(own)
}
