package backup_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

const (
	ours   = "0123456789ab"
	theirs = "ba9876543210"
)

// key of a snapshot that old.
func key(mark string, age time.Duration, suffix string) string {
	return fmt.Sprintf("x/prod/etcd-snapshot-%s-%s-%s.db", taken.Add(-age).Format("2006-01-02T15-04-05Z"), mark, suffix)
}

func TestExpired_isOldestFirst(t *testing.T) {
	t.Parallel()

	day := 24 * time.Hour
	three := []string{key(ours, 0, "aaaaaa"), key(ours, day, "aaaaaa"), key(ours, 2*day, "aaaaaa")}

	for name, test := range map[string]struct {
		retention backup.Retention
		keys      []string
		want      []string
	}{
		"nothing asked for": {backup.Retention{}, three, nil},
		"age alone":         {backup.Retention{MinAge: day}, three, nil},
		"count":             {backup.Retention{Count: 1}, three, []string{three[2], three[1]}},
		"count of all":      {backup.Retention{Count: 3}, three, nil},
		"count below one":   {backup.Retention{Count: -1}, three, nil},
		"young ones stay":   {backup.Retention{Count: 1, MinAge: 2 * day}, three, []string{three[2]}},
		"last one":          {backup.Retention{Count: 1}, three[2:], nil},
		"others do not go":  {backup.Retention{Count: 1}, []string{three[0], key(theirs, 9*day, "aaaaaa")}, nil},
		"others do not stay": {backup.Retention{Count: 1}, []string{three[1], three[2], key(theirs, 0, "aaaaaa")},
			[]string{three[2]}},
		"records and files of others": {
			backup.Retention{Count: 1}, []string{three[0], three[2] + ".json", "x/prod/state.yaml",
				"x/prod/etcd-snapshot-2020-01-02T15-04-05Z.db"}, nil,
		},
		"one second": {backup.Retention{Count: 1}, []string{key(ours, 0, "bbbbbb"), key(ours, 0, "aaaaaa")},
			[]string{key(ours, 0, "aaaaaa")}},
	} {
		var objects []store.Object
		for _, key := range test.keys {
			objects = append(objects, store.Object{Key: key})
		}

		if got := test.retention.Expired(objects, ours, "", taken); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v go, want %v", name, got, test.want)
		}
	}

	if got := (backup.Retention{Count: 1}).Expired([]store.Object{{Key: three[0]}, {Key: three[1]}}, "", "",
		taken); got != nil {
		t.Errorf("without a mark %v go", got)
	}
}

// The clock of an earlier run may have been ahead, and two snapshots may be of one second.
func TestExpired_neverHasTheOneJustTaken(t *testing.T) {
	t.Parallel()

	ahead, now, before := key(ours, -time.Hour, "aaaaaa"), key(ours, 0, "aaaaaa"), key(ours, time.Hour, "aaaaaa")
	other := key(ours, 0, "bbbbbb")

	for name, test := range map[string]struct {
		objects []store.Object
		current string
		at      time.Time
		want    []string
	}{
		"one ahead": {[]store.Object{{Key: before}, {Key: now}, {Key: ahead}}, now, taken, []string{before}},
		"one that was ahead": {[]store.Object{{Key: before}, {Key: now}, {Key: ahead}}, now, taken.Add(2 * time.Hour),
			[]string{before, ahead}},
		"one second": {[]store.Object{{Key: now}, {Key: other}}, now, taken, []string{other}},
		"one second, unknown": {[]store.Object{{Key: now, Modified: taken.Add(time.Minute)}, {Key: other, Modified: taken}},
			"", taken, []string{other}},
		"one that is not ours": {[]store.Object{{Key: now}, {Key: before}}, key(theirs, 0, "aaaaaa"), taken,
			[]string{before}},
	} {
		if got := (backup.Retention{Count: 1}).Expired(test.objects, ours, test.current, test.at); !slices.Equal(got,
			test.want) {
			t.Errorf("%s: %v go, want %v", name, got, test.want)
		}
	}
}

func TestRetain_keepsWhatWasJustTaken(t *testing.T) {
	t.Parallel()

	a, _ := archive(t)

	var last backup.Record

	for _, at := range []time.Time{taken.Add(time.Hour), taken} {
		var err error
		if last, err = a.Take(t.Context(), backup.Request{At: at, Source: inPieces(whole(t), 5000)}); err != nil {
			t.Fatal(err)
		}
	}

	for _, now := range []time.Time{taken, taken.Add(2 * time.Hour)} {
		if _, err := a.Retain(t.Context(), backup.Retention{Count: 1}, last.Key, now); err != nil {
			t.Error(err)
		}

		if err := a.Confirm(t.Context(), last.Key, last.Size, last.Checksum); err != nil {
			t.Errorf("at %s: %v", now, err)
		}
	}
}

// On random stores: what goes is ours, old enough, older than all of ours that stay, and
// enough stay.
func TestExpired_ofRandomSnapshots(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))

	for range 5000 {
		objects, retention := randomStore(random),
			backup.Retention{Count: random.IntN(5), MinAge: time.Duration(random.IntN(50)) * time.Hour}
		current := ""

		if len(objects) > 0 && random.IntN(2) == 0 {
			current = objects[random.IntN(len(objects))].Key
		}

		gone := retention.Expired(objects, ours, current, taken)

		if !slices.IsSortedFunc(gone, older) || slices.Contains(gone, current) {
			t.Fatalf("%v go, not oldest first, or with %s", gone, current)
		}

		var (
			left []string
			kept int
		)

		for _, o := range objects {
			name, ok := backup.ParseKey(o.Key)

			switch goes := slices.Contains(gone, o.Key); {
			case goes && (!ok || name.Mark != ours || taken.Sub(name.At) < retention.MinAge):
				t.Fatalf("%s goes by %+v", o.Key, retention)
			case !goes && ok && name.Mark == ours && o.Key == current:
				kept = 1
			case !goes && ok && name.Mark == ours:
				left = append(left, o.Key)
			}
		}

		if len(gone) > 0 && (len(left)+kept < max(retention.Count, 1) || len(left) > 0 &&
			older(slices.MinFunc(left, older), slices.MaxFunc(gone, older)) < 0) {
			t.Fatalf("%v go and %v stay by %+v", gone, left, retention)
		}

		// What goes once does not make more go.
		rest := slices.DeleteFunc(slices.Clone(objects), func(o store.Object) bool { return slices.Contains(gone, o.Key) })
		if again := retention.Expired(rest, ours, current, taken); len(again) > 0 {
			t.Fatalf("%v go only the second time", again)
		}
	}
}

// older compares the times of two keys.
func older(a, b string) int {
	first, _ := backup.ParseKey(a)
	second, _ := backup.ParseKey(b)

	return first.At.Compare(second.At)
}

func randomStore(random *rand.Rand) []store.Object {
	var objects []store.Object

	for i := range random.IntN(12) {
		mark := []string{ours, ours, theirs}[random.IntN(3)]
		name := key(mark, time.Duration(random.IntN(100)-5)*time.Hour, fmt.Sprintf("aaaa%02d", i)) +
			[]string{"", "", ".zst", ".json"}[random.IntN(4)]
		objects = append(objects, store.Object{Key: name, Modified: taken.Add(time.Duration(random.IntN(100)) * time.Hour)})
	}

	return objects
}

func TestParseKey_readsNamesOfThisPackageAlone(t *testing.T) {
	t.Parallel()

	name, ok := backup.ParseKey("x/prod/etcd-snapshot-2026-01-02T15-04-05Z-0123456789ab-abc234.db.zst.age")
	if want := (backup.Name{At: taken, Mark: ours, Compressed: true, Encrypted: true}); !ok || name != want {
		t.Errorf("the key says %+v (%t), want %+v", name, ok, want)
	}

	for _, key := range []string{
		"", "etcd-snapshot-2026-01-02T15-04-05Z.db", "etcd-snapshot-2026-13-02T15-04-05Z-0123456789ab-abc234.db",
		"etcd-snapshot-2026-01-02T15-04-05Z-0123456789ab-abc234.db.json",
		"etcd-snapshot-2026-01-02T15-04-05Z-0123456789ab-abc234.db.age.zst",
	} {
		if name, ok := backup.ParseKey(key); ok {
			t.Errorf("%q is read as %+v", key, name)
		}
	}
}
