package backup

import (
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Retention says which snapshots are kept. The zero value keeps all.
type Retention struct {
	// Count of the newest snapshots that are kept; 0 keeps all.
	Count int
	// MinAge is how old a snapshot must be to go, however many there are.
	MinAge time.Duration
}

// Expired returns the keys of the snapshots that go, oldest first. Only those of that mark
// are counted and only they go, and the newest of them stays, whatever is asked for. Age is
// that of the name, because a copied file or a replicated bucket has younger objects.
func (r Retention) Expired(objects []store.Object, mark string, now time.Time) []string {
	type snapshot struct {
		key string
		at  time.Time
	}

	var own []snapshot

	for _, o := range objects {
		if name, ok := ParseKey(o.Key); ok && name.Mark == mark && mark != "" {
			own = append(own, snapshot{o.Key, name.At})
		}
	}

	if r.Count <= 0 || len(own) <= r.Count {
		return nil
	}

	slices.SortFunc(own, func(a, b snapshot) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}

		return strings.Compare(a.key, b.key)
	})

	var expired []string

	for _, s := range own[:len(own)-r.Count] {
		if now.Sub(s.at) >= r.MinAge {
			expired = append(expired, s.key)
		}
	}

	return expired
}
