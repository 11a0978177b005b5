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
	var own []Stored

	for _, o := range objects {
		if name, ok := ParseKey(o.Key); ok && name.Mark == mark && mark != "" {
			own = append(own, Stored{o, name.At})
		}
	}

	return r.ExpiredOf(own, current, now)
}

// Stored is a snapshot in a store and when it was taken.
type Stored struct {
	store.Object

	At time.Time
}

// ExpiredOf is Expired for these snapshots, which it sorts.
func (r Retention) ExpiredOf(own []Stored, current string, now time.Time) []string {
	if r.Count <= 0 || len(own) <= r.Count {
		return nil
	}

	slices.SortFunc(own, func(a, b Stored) int {
		if (a.Key == current) != (b.Key == current) {
			if a.Key == current {
				return 1
			}

			return -1
		}

		// Names know no parts of a second; the store does.
		return cmp.Or(a.At.Compare(b.At), a.Modified.Compare(b.Modified), strings.Compare(a.Key, b.Key))
	})

	var expired []string

	for _, s := range own[:len(own)-r.Count] {
		if now.Sub(s.At) >= r.MinAge {
			expired = append(expired, s.Key)
		}
	}

	return expired
}
