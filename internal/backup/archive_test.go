package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

	return backup.Archive{Store: s, Prefix: "x/y", Cluster: "prod", Mark: ours, Scratch: t.TempDir()}, s
}

// sealings are all ways to store a snapshot, with what opens it.
func sealings(t *testing.T) map[string]struct {
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

func TestTakeAndFetch(t *testing.T) {
	t.Parallel()

	facts := backup.Facts{Member: "cp-2", TalosVersion: "v1.13.0", KubernetesVersion: "v1.36.3"}

	for extension, sealing := range sealings(t) {
		a, s := archive(t)

		record, err := a.Take(t.Context(), taken, facts, sealing.Sealing, inPieces(whole(t), 5000))
		if err != nil {
			t.Fatal(extension, err)
		}

		if !strings.HasPrefix(record.Key, "x/y/prod/etcd-snapshot-2026-01-02T15-04-05Z-"+ours+"-") || !strings.HasSuffix(record.Key, extension) {
			t.Errorf("the key is %s, want one that ends with %s", record.Key, extension)
		}

		stored := read(t, s, record.Key, store.Range{})
		sum := sha256.Sum256(stored)

		if record.Size != int64(len(stored)) || record.SHA256 != hex.EncodeToString(sum[:]) || record.Facts != facts || record.Database.Revision != fixtureKeys+1 {
			t.Errorf("%s: recorded %+v", extension, record)
		}

		entries, err := a.List(t.Context())
		if err != nil || len(entries) != 1 || entries[0].Record == nil || *entries[0].Record != record {
			t.Errorf("%s: listed %+v (%v), want %+v", extension, entries, err, record)
		}

		to := filepath.Join(t.TempDir(), "snapshot")

		database, err := a.Fetch(t.Context(), record.Key, sealing.keys, to)
		if err != nil || database != record.Database {
			t.Errorf("%s: fetched %+v (%v), want %+v", extension, database, err, record.Database)
		}

		same(t, to, whole(t))

		if _, err := a.Fetch(t.Context(), record.Key, sealing.keys, to); !errors.Is(err, os.ErrExist) {
			t.Errorf("a second file of that name: %v", err)
		}

		same(t, to, whole(t))
		untouched(t, s, 2)

		if left, err := os.ReadDir(a.Scratch); err != nil || len(left) > 0 {
			t.Errorf("%v was left of the check (%v)", left, err)
		}
	}
}

// same checks a file, which must be for its owner alone.
func same(t *testing.T, path string, want []byte) {
	t.Helper()

	data, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(data, want) {
		t.Errorf("%s has %d bytes (%v), want the snapshot", path, len(data), err)
	}

	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s is %v (%v)", path, info, err)
	}
}

func TestPassphrase(t *testing.T) {
	t.Parallel()

	a, _ := archive(t)

	record, err := a.Take(t.Context(), taken, backup.Facts{}, backup.Sealing{Passphrase: "correct horse"}, inPieces(whole(t), 5000))
	if err != nil {
		t.Fatal(err)
	}

	to := filepath.Join(t.TempDir(), "snapshot")

	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	for name, keys := range map[string]backup.Keys{"none": {}, "another": {Passphrase: "wrong horse"}, "an identity": {Identities: []string{other.String()}}} {
		if _, err := a.Fetch(t.Context(), record.Key, keys, to); !errors.Is(err, backup.ErrLocked) || strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: %v, want that it is locked", name, err)
		}
	}

	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}

	if _, err := a.Fetch(t.Context(), record.Key, backup.Keys{Passphrase: "correct horse"}, to); err != nil {
		t.Fatal(err)
	}

	same(t, to, whole(t))
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()

	a, s := archive(t)

	for _, sealing := range []backup.Sealing{{Recipients: []string{"age1no"}}, {Recipients: []string{"AGE-SECRET-KEY-1SECRET"}}, {Recipients: []string{"x"}, Passphrase: "y"}} {
		if _, err := a.Take(t.Context(), taken, backup.Facts{}, sealing, inPieces(whole(t), 5000)); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v: %v", sealing.Recipients, err)
		}
	}

	untouched(t, s, 0)
}

// What the stream of a member may look like when it is no snapshot, and what may happen to
// it on the way.
func TestTakeStoresNothingThatIsNotSound(t *testing.T) {
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
		"empty": {inPieces(nil, 1), backup.ErrIncomplete}, "truncated": {inPieces(snapshot[:len(snapshot)-100], 5000), backup.ErrIncomplete},
		"truncated at a page": {inPieces(snapshot[:8*pageSize], 5000), backup.ErrIncomplete}, "without its sum": {inPieces(snapshot[:len(snapshot)-32], 5000), backup.ErrIncomplete},
		"header": {flipped(0), backup.ErrIncomplete}, "page": {flipped(5*pageSize + 100), backup.ErrIncomplete}, "sum": {flipped(len(snapshot) - 1), backup.ErrIncomplete},
		"dies at once": {dies(0), broken}, "dies half way": {dies(len(snapshot) / 2), broken}, "dies at the end": {dies(len(snapshot)), broken},
		"damaged on the member": {inPieces(summed(damaged), 5000), backup.ErrDamaged},
		"no database of etcd":   {inPieces(summed(bytes.Repeat([]byte{0}, 4*pageSize)), 5000), backup.ErrDamaged},
	} {
		for extension, sealing := range sealings(t) {
			a, s := archive(t)
			if _, err := a.Take(t.Context(), taken, backup.Facts{}, sealing.Sealing, test.source); !errors.Is(err, test.want) {
				t.Errorf("%s%s: %v, want %v", name, extension, err, test.want)
			}

			untouched(t, s, 0)
		}
	}
}

// Each place of what is stored, with and without its record: a header, ciphertext or pages,
// a trailer.
func TestFetchRefusesEveryFlippedByte(t *testing.T) {
	t.Parallel()

	for extension, sealing := range sealings(t) {
		t.Run(extension, func(t *testing.T) {
			t.Parallel()

			a, s := archive(t)

			record, err := a.Take(t.Context(), taken, backup.Facts{}, sealing.Sealing, inPieces(whole(t), 5000))
			if err != nil {
				t.Fatal(err)
			}

			path, to := filepath.Join(s.Path, filepath.FromSlash(record.Key)), filepath.Join(t.TempDir(), "snapshot")
			stored := read(t, s, record.Key, store.Range{})

			refuses := func(what string, at int, data []byte, recorded bool) {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}

				_, err := a.Fetch(t.Context(), record.Key, sealing.keys, to)
				if err == nil && !recorded && bytes.Equal(contents(t, to), whole(t)) {
					err = os.Remove(to) // a byte that nothing depends on, such as a flag without a meaning
				} else if err == nil {
					t.Fatalf("%s %d of %d bytes is opened", what, at, len(stored))
				}

				if _, gone := os.Stat(to); !errors.Is(gone, os.ErrNotExist) {
					t.Fatalf("%s %d: a file is left, and %v", what, at, err)
				}
			}

			for _, recorded := range []bool{true, false} {
				for at := range stored {
					if at >= 300 && at < len(stored)-100 && at%997 != 0 {
						continue
					}

					data := bytes.Clone(stored)
					data[at] ^= 1
					refuses("byte", at, data, recorded)
				}

				for _, length := range []int{0, 10, 100, len(stored) / 2, len(stored) - 33, len(stored) - 32, len(stored) - 1} {
					refuses("the end at", length, stored[:length], recorded)
				}

				refuses("one more than", 0, append(bytes.Clone(stored), 0), recorded)

				if err := s.Delete(t.Context(), record.Key+".json"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return data
}

// What `talosctl etcd snapshot` wrote has no record and another name.
func TestFetchOpensASnapshotOfTalosctl(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	if _, err := s.Put(t.Context(), "db.snapshot", bytes.NewReader(whole(t))); err != nil {
		t.Fatal(err)
	}

	to := filepath.Join(t.TempDir(), "snapshot")
	if database, err := a.Fetch(t.Context(), "db.snapshot", backup.Keys{}, to); err != nil || database.Revision != fixtureKeys+1 {
		t.Errorf("fetched %+v (%v)", database, err)
	}

	same(t, to, whole(t))
}

// The command line of zstd, where it is installed, opens what was stored.
func TestZstdCommandLine(t *testing.T) {
	t.Parallel()

	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("zstd is not installed")
	}

	a, s := archive(t)

	record, err := a.Take(t.Context(), taken, backup.Facts{}, backup.Sealing{Compress: true}, inPieces(whole(t), 5000))
	if err != nil {
		t.Fatal(err)
	}

	opened, err := exec.CommandContext(t.Context(), program, "-dc", filepath.Join(s.Path, filepath.FromSlash(record.Key))).Output()
	if err != nil || !bytes.Equal(opened, whole(t)) {
		t.Errorf("zstd makes %d bytes of it (%v)", len(opened), err)
	}
}

func TestRetain(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	other := a
	other.Mark = theirs

	for i, of := range []backup.Archive{a, other, a, a, other} {
		if _, err := of.Take(t.Context(), taken.Add(time.Duration(i)*time.Hour), backup.Facts{}, backup.Sealing{}, inPieces(whole(t), 5000)); err != nil {
			t.Fatal(err)
		}
	}

	before, err := a.List(t.Context())
	if err != nil || len(before) != 3 {
		t.Fatalf("listed %+v (%v), want the three of this cluster", before, err)
	}

	left, removed, err := a.Retain(t.Context(), backup.Retention{Count: 1, MinAge: time.Hour}, taken.Add(3*time.Hour))
	if err != nil || left != 1 || len(removed) != 2 || removed[0] != before[0].Key || removed[1] != before[1].Key {
		t.Errorf("%v were removed and %d are left (%v)", removed, left, err)
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
func TestASnapshotWithoutARecordIsListed(t *testing.T) {
	t.Parallel()

	a, s := archive(t)

	record, err := a.Take(t.Context(), taken, backup.Facts{}, backup.Sealing{}, inPieces(whole(t), 5000))
	if err = errors.Join(err, s.Delete(t.Context(), record.Key+".json")); err != nil {
		t.Fatal(err)
	}

	entries, err := a.List(t.Context())
	if err != nil || len(entries) != 1 || entries[0].Record != nil || !entries[0].Name.At.Equal(taken) {
		t.Errorf("listed %+v (%v)", entries, err)
	}
}

func TestArchiveRefusesNamesThatJoinClusters(t *testing.T) {
	t.Parallel()

	for _, change := range []func(*backup.Archive){
		func(a *backup.Archive) { a.Cluster = "" }, func(a *backup.Archive) { a.Cluster = "a/b" }, func(a *backup.Archive) { a.Mark = "" },
		func(a *backup.Archive) { a.Mark = "not-hexadecimal" }, func(a *backup.Archive) { a.Prefix = "/x" },
	} {
		a, s := archive(t)
		change(&a)

		if _, err := a.Take(t.Context(), taken, backup.Facts{}, backup.Sealing{}, inPieces(whole(t), 5000)); err == nil {
			t.Errorf("%+v is accepted", a)
		}

		if _, err := a.List(t.Context()); err == nil {
			t.Errorf("%+v is listed", a)
		}

		untouched(t, s, 0)
	}
}
