package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// archive keeps snapshots in a folder.
func archive(t *testing.T) (backup.Archive, file.Store) {
	t.Helper()

	s := file.Store{Path: t.TempDir()}

	return backup.Archive{Store: s, Prefix: "x/y", Cluster: "prod", Mark: ours, RecordKeys: recordKeys,
		Scratch: t.TempDir()}, s
}

// recordKeys are those of the cluster in all tests.
var recordKeys = [][]byte{[]byte("a key of this record alone")}

// keyless is an archive without the keys of the cluster.
func keyless(a backup.Archive) backup.Archive {
	a.RecordKeys = nil

	return a
}

// sealings are all ways to store a snapshot, with what opens it.
func sealings(t testing.TB) map[string]struct {
	backup.Sealing
	keys backup.Keys
} {
	t.Helper()

	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	to, keys := []string{identity.Recipient().String()}, backup.Keys{Identities: []string{identity.String()}}

	return map[string]struct {
		backup.Sealing
		keys backup.Keys
	}{
		".db":         {backup.Sealing{}, backup.Keys{}},
		".db.zst":     {backup.Sealing{Compress: true}, backup.Keys{}},
		".db.age":     {backup.Sealing{Recipients: to}, keys},
		".db.zst.age": {backup.Sealing{Compress: true, Recipients: to}, keys},
	}
}

func TestTake_opensAsItWasTaken(t *testing.T) {
	t.Parallel()

	facts := backup.Facts{Member: "cp-2", TalosVersion: "v1.13.0", KubernetesVersion: "v1.36.3"}

	for extension, sealing := range sealings(t) {
		a, s := archive(t)

		record, err := a.Take(t.Context(),
			backup.Request{At: taken, Facts: facts, Sealing: sealing.Sealing, Source: inPieces(whole(t), 5000)})
		if err != nil {
			t.Fatal(extension, err)
		}

		if !strings.HasPrefix(record.Key, "x/y/prod/etcd-snapshot-2026-01-02T15-04-05Z-"+ours+"-") ||
			!strings.HasSuffix(record.Key, extension) {
			t.Errorf("the key is %s, want one that ends with %s", record.Key, extension)
		}

		stored := read(t, s, record.Key, store.Range{})
		sum := sha256.Sum256(stored)

		if record.Size != int64(len(stored)) || record.SHA256 != hex.EncodeToString(sum[:]) || record.Facts != facts ||
			record.Database.Revision != fixtureKeys+1 {
			t.Errorf("%s: recorded %+v", extension, record)
		}

		entries, err := a.List(t.Context())
		if err != nil || len(entries) != 1 || entries[0].Record == nil || !reflect.DeepEqual(*entries[0].Record, record) {
			t.Errorf("%s: listed %+v (%v), want %+v", extension, entries, err, record)
		}

		snapshot, err := a.Fetch(t.Context(), record.Key, sealing.keys)
		if err != nil || snapshot.Database != record.Database || !reflect.DeepEqual(*snapshot.Record, record) {
			t.Fatalf("%s: fetched %+v (%v), want %+v", extension, snapshot, err, record)
		}

		left(t, a.Scratch, 0)
		same(t, snapshot)
		untouched(t, s, 2)
	}
}

// same checks that a snapshot is that of the fixture, however often it is read, and closes it.
func same(t *testing.T, snapshot *backup.Snapshot) {
	t.Helper()

	for range 2 {
		data, err := io.ReadAll(snapshot.Reader())
		if err != nil || !bytes.Equal(data, whole(t)) || snapshot.Size() != int64(len(data)) {
			t.Errorf("the snapshot has %d bytes and says %d (%v)", len(data), snapshot.Size(), err)
		}
	}

	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
}

func TestKeys_refusesWhatIsNone(t *testing.T) {
	t.Parallel()

	a, s := archive(t)

	for _, sealing := range []backup.Sealing{{Recipients: []string{"age1no"}},
		{Recipients: []string{"AGE-SECRET-KEY-1SECRET"}}, {Recipients: []string{"x"}, Passphrase: "y"}} {
		if _, err := a.Take(t.Context(),
			backup.Request{At: taken, Sealing: sealing, Source: inPieces(whole(t), 5000)}); err == nil ||
			strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v: %v", sealing.Recipients, err)
		}
	}

	untouched(t, s, 0)
}

// What the stream of a member may look like when it is no snapshot, and what may happen to
// it on the way.
func TestTake_storesNothingThatIsNotSound(t *testing.T) {
	t.Parallel()

	broken := errors.New("the member went away")
	snapshot := whole(t)
	damaged := bytes.Clone(snapshot[:len(snapshot)-sha256.Size])
	damaged[3*pageSize+8] ^= 0xff

	dies := func(after int) backup.Source {
		return func(ctx context.Context, to io.Writer) error {
			if err := inPieces(snapshot[:after], 1000)(ctx, to); err != nil {
				return err
			}

			return broken
		}
	}

	flipped := func(at int) backup.Source {
		data := bytes.Clone(snapshot)
		data[at] ^= 1

		return inPieces(data, 5000)
	}

	for name, test := range map[string]struct {
		source backup.Source
		want   error
	}{
		"empty":               {inPieces(nil, 1), backup.ErrIncomplete},
		"truncated":           {inPieces(snapshot[:len(snapshot)-100], 5000), backup.ErrIncomplete},
		"truncated at a page": {inPieces(snapshot[:8*pageSize], 5000), backup.ErrIncomplete},
		"without its sum":     {inPieces(snapshot[:len(snapshot)-32], 5000), backup.ErrIncomplete},
		"header":              {flipped(0), backup.ErrIncomplete}, "page": {flipped(5*pageSize + 100), backup.ErrIncomplete},
		"sum":          {flipped(len(snapshot) - 1), backup.ErrIncomplete},
		"dies at once": {dies(0), broken}, "dies half way": {dies(len(snapshot) / 2), broken},
		"dies at the end":       {dies(len(snapshot)), broken},
		"damaged on the member": {inPieces(summed(damaged), 5000), backup.ErrDamaged},
		"no database of etcd":   {inPieces(summed(bytes.Repeat([]byte{0}, 4*pageSize)), 5000), backup.ErrDamaged},
	} {
		for extension, sealing := range sealings(t) {
			a, s := archive(t)
			if _, err := a.Take(t.Context(),
				backup.Request{At: taken, Sealing: sealing.Sealing, Source: test.source}); !errors.Is(err, test.want) {
				t.Errorf("%s%s: %v, want %v", name, extension, err, test.want)
			}

			untouched(t, s, 0)
		}
	}
}

func TestRetain_removesWhatTheRetentionLetsGo(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	other := a
	other.Mark = theirs

	for i, of := range []backup.Archive{a, other, a, a, other} {
		if _, err := of.Take(t.Context(),
			backup.Request{At: taken.Add(time.Duration(i) * time.Hour), Source: inPieces(whole(t), 5000)}); err != nil {
			t.Fatal(err)
		}
	}

	before, err := a.List(t.Context())
	if err != nil || len(before) != 3 {
		t.Fatalf("listed %+v (%v), want the three of this cluster", before, err)
	}

	done, err := a.Retain(t.Context(), backup.Retention{Count: 1, MinAge: time.Hour}, "", taken.Add(3*time.Hour))
	if want := []string{before[0].Key, before[1].Key}; err != nil || done.Left != 1 || !slices.Equal(done.Removed, want) {
		t.Errorf("%+v (%v)", done, err)
	}

	untouched(t, s, 6) // three snapshots with their records

	if err := a.Remove(t.Context(), strings.Replace(before[2].Key, ours, theirs, 1)); err == nil {
		t.Error("a snapshot of another cluster can be removed")
	}

	for range 2 {
		if err := a.Remove(t.Context(), before[2].Key); err != nil {
			t.Error(err)
		}
	}

	untouched(t, s, 4)
}

// A run that was killed before it recorded its snapshot leaves one that is listed and can go.
func TestList_ofASnapshotWithoutARecord(t *testing.T) {
	t.Parallel()

	a, s := archive(t)

	record, err := a.Take(t.Context(), backup.Request{At: taken, Source: inPieces(whole(t), 5000)})
	if err = errors.Join(err, s.Delete(t.Context(), record.Key+".json")); err != nil {
		t.Fatal(err)
	}

	entries, err := a.List(t.Context())
	if err != nil || len(entries) != 1 || entries[0].Record != nil || !entries[0].Name.At.Equal(taken) {
		t.Errorf("listed %+v (%v)", entries, err)
	}
}

func TestArchive_refusesNamesThatJoinClusters(t *testing.T) {
	t.Parallel()

	for _, change := range []func(*backup.Archive){
		func(a *backup.Archive) { a.Cluster = "" }, func(a *backup.Archive) { a.Cluster = "a/b" },
		func(a *backup.Archive) { a.Mark = "" },
		func(a *backup.Archive) { a.Mark = "not-hexadecimal" }, func(a *backup.Archive) { a.Prefix = "/x" },
	} {
		a, s := archive(t)
		change(&a)

		if _, err := a.Take(t.Context(), backup.Request{At: taken, Source: inPieces(whole(t), 5000)}); err == nil {
			t.Errorf("%+v is accepted", a)
		}

		if _, err := a.List(t.Context()); err == nil {
			t.Errorf("%+v is listed", a)
		}

		untouched(t, s, 0)
	}
}

func TestConfirm_comparesWithTheRecord(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store.Store) {
		a := backup.Archive{Store: s, Cluster: "prod", Mark: ours, RecordKeys: recordKeys, Scratch: t.TempDir()}

		record, err := a.Take(t.Context(), backup.Request{At: taken, Source: inPieces(whole(t), 5000)})
		if err != nil {
			t.Fatal(err)
		}

		for name, test := range map[string]struct {
			key      string
			size     int64
			checksum string
			want     error
		}{
			"as recorded":       {record.Key, record.Size, record.Checksum, nil},
			"no checksum known": {record.Key, record.Size, "", nil},
			"missing":           {record.Key + "x", record.Size, record.Checksum, store.ErrNotFound},
			"another size":      {record.Key, record.Size + 1, record.Checksum, store.ErrDiffers},
			"other bytes":       {record.Key, record.Size, "x", store.ErrDiffers},
		} {
			if err := a.Confirm(t.Context(), test.key, test.size, test.checksum); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
		}
	})
}

// Another cluster of the same name may be storing its snapshot at this moment.
func TestSweep_leavesOtherClustersAlone(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	folder := filepath.Join(s.Path, "x", "y", "prod")

	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}

	for _, mark := range []string{ours, theirs} {
		for _, suffix := range []string{"", ".json"} {
			name := ".talosop-partial-" + filepath.Base(key(mark, 0, "aaaaaa")) + suffix + "-1"
			if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}

	for _, test := range []struct {
		before time.Time
		want   int
	}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 2}, {time.Now().Add(time.Hour), 0}} {
		if swept, err := a.Sweep(t.Context(), test.before); err != nil || swept != test.want {
			t.Errorf("%d rests were swept (%v), want %d", swept, err, test.want)
		}
	}

	left(t, folder, 2)
}
