package schedule

import (
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Snapshots are the keys of this schedule's snapshots among objects, oldest first.
func (s Spec) Snapshots(objects []store.Object) []string {
	own := s.own(objects)

	keys := make([]string, 0, len(own))
	for _, snapshot := range own {
		keys = append(keys, snapshot.key)
	}

	return keys
}

// Expired are the keys of the snapshots that a retention lets go, oldest first. Only those of
// this schedule and cluster are counted and only they go, and never the newest.
func (s Spec) Expired(r backup.Retention, objects []store.Object, now time.Time) []string {
	own := s.own(objects)

	if r.Count <= 0 || len(own) <= r.Count {
		return nil
	}

	var expired []string

	for _, snapshot := range own[:len(own)-r.Count] {
		if now.Sub(snapshot.at) >= r.MinAge {
			expired = append(expired, snapshot.key)
		}
	}

	return expired
}

type snapshot struct {
	key string
	at  time.Time
}

func (s Spec) own(objects []store.Object) []snapshot {
	var own []snapshot

	for _, o := range objects {
		if at, ok := s.TimeOf(o.Key); ok && s.Mark != "" {
			own = append(own, snapshot{o.Key, at})
		}
	}

	slices.SortFunc(own, func(a, b snapshot) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}

		return strings.Compare(a.key, b.key)
	})

	return own
}
