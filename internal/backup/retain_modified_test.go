package backup_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// flip changes one byte of a stored file in place.
func flip(t *testing.T, s file.Store, key string) {
	t.Helper()

	name := filepath.Join(s.Path, filepath.FromSlash(key))

	content, err := os.ReadFile(name)
	must(t, err)

	content[len(content)/2] ^= 0xff
	must(t, os.WriteFile(name, content, 0o600))
}

// fill takes snapshots, one an hour.
func fill(t *testing.T, a backup.Archive, count int) []backup.Record {
	t.Helper()

	records := make([]backup.Record, 0, count)

	for i := range count {
		record, err := a.Take(t.Context(),
			backup.Request{At: taken.Add(time.Duration(i) * time.Hour), Source: inPieces(whole(t), 5000)})
		must(t, err)

		records = append(records, record)
	}

	return records
}

// In a folder, too, a snapshot that was modified takes the place of no good one.
func TestRetain_modifiedInAFolder(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		current bool
		spoil   func(t *testing.T, s file.Store, key string)
	}{
		"modified":              {false, flip},
		"modified, current":     {true, flip},
		"cut off":               {false, func(t *testing.T, s file.Store, key string) { shorten(t, s, key) }},
		"gone":                  {false, func(t *testing.T, s file.Store, key string) { must(t, s.Delete(t.Context(), key)) }},
		"record of another one": {false, func(t *testing.T, s file.Store, key string) { must(t, s.Delete(t.Context(), key+".json")) }},
	} {
		a, s := archive(t)
		records := fill(t, a, 4)
		newest, current := records[3].Key, ""
		test.spoil(t, s, newest)

		if test.current {
			current = newest
		}

		done, err := a.Retain(t.Context(), backup.Retention{Count: 3}, current, taken.Add(24*time.Hour))
		if err != nil || len(done.Removed) > 0 || done.Left != 3 {
			t.Errorf("%s: %+v (%v), want that none goes", name, done, err)
		}

		done, err = a.Retain(t.Context(), backup.Retention{Count: 2}, current, taken.Add(24*time.Hour))
		if err != nil || !slices.Equal(done.Removed, []string{records[0].Key}) || done.Left != 2 {
			t.Errorf("%s: %+v (%v), want that the oldest goes", name, done, err)
		}
	}
}

func shorten(t *testing.T, s file.Store, key string) {
	t.Helper()

	must(t, os.Truncate(filepath.Join(s.Path, filepath.FromSlash(key)), 100))
}

// In folders where any snapshots were modified, cut off or removed, as many good ones stay as asked for, or all.
func TestRetain_keepsGoodOnes(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(3, 4))

	for range 40 {
		a, s := archive(t)
		records := fill(t, a, 5)
		count, current := 1+random.IntN(4), ""

		if random.IntN(2) == 0 {
			current = records[4].Key
		}

		good := map[string]backup.Record{}

		for _, r := range records {
			switch random.IntN(5) {
			case 0:
				flip(t, s, r.Key)
			case 1:
				shorten(t, s, r.Key)
			case 2:
				must(t, s.Delete(t.Context(), r.Key))
			default:
				good[r.Key] = r
			}
		}

		// A file of another client.
		_, err := s.Put(t.Context(), key(ours, -9*time.Hour, "zzzzzz"), bytes.NewReader([]byte("foreign")))
		must(t, err)

		done, err := a.Retain(t.Context(), backup.Retention{Count: count}, current, taken.Add(24*time.Hour))
		must(t, err)

		left := 0

		for _, r := range good {
			switch err := a.Confirm(t.Context(), r.Key, r.Size, r.Checksum); {
			case err == nil:
				left++
			case !errors.Is(err, store.ErrNotFound):
				t.Fatal(err)
			}
		}

		if left < min(count, len(good)) {
			t.Fatalf("%d of %d good snapshots are left with count %d: %+v", left, len(good), count, done)
		}
	}
}
