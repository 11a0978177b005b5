package backup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Retention is which snapshots are kept. The zero value keeps all.
type Retention struct {
	// Count of the newest snapshots that are kept; 0 keeps all.
	Count int
	// MinAge is how old a snapshot must be to go, however many there are.
	MinAge time.Duration
}

// Expired returns the keys of the expired snapshots, oldest first. Only snapshots with that mark count and expire,
// and the newest of them always stays. The age comes from the name, because a copied file or a replicated bucket
// has younger objects. It is never newer than the object, because the store knows better. A snapshot of the future
// neither counts nor expires. The snapshot with the key current, the one just taken or empty, counts as the newest
// whatever its name says: the clock behind an earlier one may have been ahead. It never expires.
func (r Retention) Expired(objects []store.Object, mark, current string, now time.Time) []string {
	var own []Stored

	for _, o := range objects {
		if name, ok := ParseKey(o.Key); ok && name.Mark == mark && mark != "" {
			own = append(own, Stored{o, name.At})
		}
	}

	return r.expired(own, current, now)
}

// Stored is a snapshot in a store and when it was taken.
type Stored struct {
	store.Object

	At time.Time
}

// known is when the snapshot was taken as far as the store bears that out.
func (s Stored) known() time.Time {
	if !s.Modified.IsZero() && s.Modified.Before(s.At) {
		return s.Modified
	}

	return s.At
}

// expired is Expired for these snapshots, which it sorts.
func (r Retention) expired(own []Stored, current string, now time.Time) []string {
	own = slices.DeleteFunc(own, func(s Stored) bool { return s.At.After(now) && s.Key != current })

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
		return cmp.Or(a.known().Compare(b.known()), a.Modified.Compare(b.Modified), strings.Compare(a.Key, b.Key))
	})

	var expired []string

	for _, s := range own[:len(own)-r.Count] {
		if now.Sub(s.known()) >= r.MinAge {
			expired = append(expired, s.Key)
		}
	}

	return expired
}

// Retained is the result of a retention.
type Retained struct {
	// Left are the snapshots that count.
	Left int
	// Removed are the keys of the removed snapshots.
	Removed []string
	// Uncounted are the keys of objects that are named like a snapshot of this cluster, and that it did not
	// record. They neither count nor expire.
	Uncounted []string
}

// Retain removes the snapshots that a retention lets go. The snapshot with the key current always stays: the one
// just taken, or the one in a state; empty for none. Only snapshots that the cluster recorded, and that match
// their record, count. Otherwise a client that may put objects into the store, and delete none, could have real
// ones deleted with newer names. The one with the key current counts without a record, and not with one that it
// differs from.
func (a Archive) Retain(ctx context.Context, r Retention, current string, now time.Time) (Retained, error) {
	objects, err := a.objects(ctx)
	if err != nil {
		return Retained{}, err
	}

	named := a.own(objects)
	if r.Count <= 0 || len(named) <= r.Count {
		return Retained{Left: len(named)}, nil
	}

	counted, uncounted, err := a.counted(ctx, named, current)
	if err != nil {
		return Retained{Left: len(named)}, err
	}

	expired, others, err := a.expired(ctx, r, counted, current, now)
	done := Retained{Left: len(counted) - len(others), Uncounted: append(uncounted, others...)}

	if err != nil {
		return done, err
	}

	for _, key := range expired {
		if err := a.Remove(ctx, key); err != nil {
			return done, err
		}

		done.Left--
		done.Removed = append(done.Removed, key)
	}

	return done, nil
}

// counted are the snapshots that count, as far as the listing shows, and the keys of the others.
func (a Archive) counted(
	ctx context.Context, named []Entry, current string,
) (counted []Entry, others []string, err error) {
	if err := a.readRecords(ctx, named); err != nil {
		return nil, nil, err
	}

	for _, e := range named {
		switch {
		case e.Key == current || e.Record != nil && e.Record.Size == e.Size:
			counted = append(counted, e)
		case e.RecordErr != nil && !Unrecorded(e.RecordErr) && !errors.Is(e.RecordErr, ErrRecord) &&
			!errors.Is(e.RecordErr, ErrUntrusted):
			return nil, nil, e.RecordErr // for now
		default:
			others = append(others, e.Key)
		}
	}

	return counted, others, nil
}

// expired are those that go. Those that stay instead are compared with their records: others are the keys of those that
// are not as they were recorded. A folder reads its files for that, which costs less than a good snapshot.
func (a Archive) expired(
	ctx context.Context, r Retention, counted []Entry, current string, now time.Time,
) (expired, others []string, err error) {
	confirmed := map[string]bool{}

	for {
		var (
			left []Stored
			look []Entry
		)

		for _, e := range counted {
			if !slices.Contains(others, e.Key) {
				left = append(left, Stored{e.Object, e.Name.At})
			}
		}

		expired = r.expired(left, current, now)
		if len(expired) == 0 {
			return expired, others, nil
		}

		for _, e := range counted {
			if e.Record != nil && !confirmed[e.Key] && !slices.Contains(others, e.Key) && !slices.Contains(expired, e.Key) {
				look, confirmed[e.Key] = append(look, e), true
			}
		}

		replaced, err := a.replaced(ctx, look)
		if err != nil || len(replaced) == 0 {
			return expired, others, err
		}

		others = append(others, replaced...)
	}
}

// replaced are the keys of the snapshots that are not as they were recorded.
func (a Archive) replaced(ctx context.Context, entries []Entry) ([]string, error) {
	var (
		mu    sync.Mutex
		keys  []string
		group errgroup.Group
	)

	group.SetLimit(recordsAtOnce)

	for _, e := range entries {
		group.Go(func() error {
			err := a.Confirm(ctx, e.Key, e.Record.Size, e.Record.Checksum)
			if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDiffers) {
				mu.Lock()
				defer mu.Unlock()

				keys = append(keys, e.Key)

				return nil
			}

			return err
		})
	}

	err := group.Wait() // first: a return may read keys before it calls functions

	return keys, err
}
