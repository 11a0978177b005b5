package backup

import (
	"cmp"
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
// that of the name, because a copied file or a replicated bucket has younger objects. The
// snapshot with the key current, the one just taken or empty, is the newest whatever its name
// says: the clock of whoever took an earlier one may have been ahead. It never goes.
func (r Retention) Expired(objects []store.Object, mark, current string, now time.Time) []string {
	type snapshot struct {
		store.Object

		at time.Time
	}

	var own []snapshot

	for _, o := range objects {
		if name, ok := ParseKey(o.Key); ok && name.Mark == mark && mark != "" {
			own = append(own, snapshot{o, name.At})
		}
	}

	if r.Count <= 0 || len(own) <= r.Count {
		return nil
	}

	slices.SortFunc(own, func(a, b snapshot) int {
		if (a.Key == current) != (b.Key == current) {
			if a.Key == current {
				return 1
			}

			return -1
		}

		// Names know no parts of a second; the store does.
		return cmp.Or(a.at.Compare(b.at), a.Modified.Compare(b.Modified), strings.Compare(a.Key, b.Key))
	})

	var expired []string

	for _, s := range own[:len(own)-r.Count] {
		if now.Sub(s.at) >= r.MinAge {
			expired = append(expired, s.Key)
		}
	}

	return expired
}
