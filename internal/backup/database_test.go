package backup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
)

const (
	fixtureKeys = 500
	pageSize    = 4096
)

// fixture is a snapshot as etcd makes them: the buckets that matter here, branch and leaf
// pages, values that span pages, free pages, and the sum.
var fixture = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "talosop-fixture-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)

	db, err := bolt.Open(filepath.Join(folder, "db"), 0o600, &bolt.Options{PageSize: pageSize, NoSync: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()

	if err := db.Update(fillFixture); err != nil {
		return nil, err
	}

	// What is deleted leaves free pages.
	if err := db.Update(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("lease")) }); err != nil {
		return nil, err
	}

	var data bytes.Buffer

	err = db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(&data)
		return err
	})

	return summed(data.Bytes()), err
})

func fillFixture(tx *bolt.Tx) error {
	for _, name := range []string{"key", "lease", "meta"} {
		bucket, err := tx.CreateBucket([]byte(name))
		if err != nil {
			return err
		}

		for i := range fixtureKeys {
			value := bytes.Repeat(fmt.Appendf(nil, "value %d ", i), 3)
			if i%250 == 0 {
				value = bytes.Repeat(value, 400)
			}

			if name != "meta" {
				if err := bucket.Put(revision(i+2), value); err != nil {
					return err
				}
			}
		}

		if name == "meta" {
			if err := bucket.Put([]byte("storageVersion"), []byte("3.6.0")); err != nil {
				return err
			}
		}
	}

	return nil
}

// revision is the key of an entry of etcd.
func revision(main int) []byte {
	key := append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_')

	return binary.BigEndian.AppendUint64(key, 0)
}

// summed is a database with its sum at the end.
func summed(database []byte) []byte {
	sum := sha256.Sum256(database)

	return append(bytes.Clone(database), sum[:]...)
}

func whole(tb testing.TB) []byte {
	tb.Helper()

	data, err := fixture()
	if err != nil {
		tb.Fatal(err)
	}

	return data
}

// written is a file of that content.
func written(tb testing.TB, data []byte) string {
	tb.Helper()

	path := filepath.Join(tb.TempDir(), "db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}

	return path
}

func TestInspect_readsWhatTheDatabaseHolds(t *testing.T) {
	t.Parallel()

	snapshot := whole(t)
	database := snapshot[:len(snapshot)-sha256.Size]

	with, err := backup.Inspect(t.Context(), written(t, snapshot))
	if err != nil {
		t.Fatal(err)
	}

	without, err := backup.Inspect(t.Context(), written(t, database))
	if err != nil || with != without {
		t.Errorf("a database without a sum is %+v (%v), with one %+v", without, err, with)
	}

	want := backup.Database{Revision: fixtureKeys + 1, Size: int64(len(database)), Hash: reference(t, database),
		Version: "3.6.0"}
	if with != want {
		t.Errorf("the database is %+v, want %+v", with, want)
	}
}

// Databases of all shapes, with pages that were free and are used again, as bbolt sees them.
func TestInspect_agreesWithBbolt(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(3, 4))

	for _, size := range []int{1024, pageSize, 16384} {
		for _, unlisted := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "db")

			db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: size, NoSync: true, NoFreelistSync: unlisted})
			if err != nil {
				t.Fatal(err)
			}

			for round := range 12 {
				if err := db.Update(func(tx *bolt.Tx) error { return churn(tx, random, round) }); err != nil {
					t.Fatal(err)
				}
			}

			var data bytes.Buffer

			err = db.View(func(tx *bolt.Tx) error {
				_, err := tx.WriteTo(&data)
				return err
			})
			if err = errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}

			a, _ := archive(t)

			record, err := a.Take(t.Context(),
				backup.Request{At: taken, Source: inPieces(summed(data.Bytes()), 1+random.IntN(3*size))})
			if want := reference(t, data.Bytes()); err != nil || record.Database.Hash != want ||
				record.Database.Size != int64(data.Len()) {
				t.Errorf("pages of %d, unlisted %t: %+v (%v), want the hash %d", size, unlisted, record.Database, err, want)
			}
		}
	}
}

// churn writes and deletes some keys of several buckets.
func churn(tx *bolt.Tx, random *rand.Rand, round int) error {
	for i, name := range []string{"key", "lease", "auth", "empty"} {
		bucket, err := tx.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}

		for j := range 300 / (3*i + 1) * (3 - i) / 3 {
			at := round*300 + j

			err := bucket.Put(revision(at), content(random.IntN(200)))
			if random.IntN(20) == 0 {
				err = errors.Join(err, bucket.Put(revision(at), content(random.IntN(50000))))
			}

			if err = errors.Join(err, bucket.Delete(revision(random.IntN(at+1)))); err != nil {
				return err
			}
		}
	}

	return nil
}

// reference is the hash as etcdutl makes it, by means of bbolt (etcd 3.6, etcdutl/snapshot, Status).
func reference(t *testing.T, database []byte) uint32 {
	t.Helper()

	db, err := bolt.Open(written(t, database), 0o400, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))

	if err := db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}

		return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
			sum.Write(name)

			return bucket.ForEach(func(k, v []byte) error {
				sum.Write(k)
				sum.Write(v)

				return nil
			})
		})
	}); err != nil {
		t.Fatal(err)
	}

	return sum.Sum32()
}

// Databases whose sum is right and whose pages are not: the member was damaged, not the
// stream. Offsets are those of bbolt's page header: id 0, flags 8, count 10, overflow 12.
func TestInspect_refusesDamagedPages(t *testing.T) {
	t.Parallel()

	snapshot := whole(t)
	database := snapshot[:len(snapshot)-sha256.Size]
	refused := map[string]int{}
	path := filepath.Join(t.TempDir(), "db")

	for page := 0; page*pageSize < len(database); page++ {
		kind := binary.LittleEndian.Uint16(database[page*pageSize+8:])

		for what, at := range map[string]int{"id": 0, "high id": 7, "flags": 8, "count": 10, "high count": 11, "overflow": 12,
			"element": 16, "position": 20} {
			damaged := bytes.Clone(database)
			damaged[page*pageSize+at] ^= 0x55

			if err := os.WriteFile(path, summed(damaged), 0o600); err != nil {
				t.Fatal(err)
			}

			_, err := backup.Inspect(t.Context(), path)
			if err != nil && !errors.Is(err, backup.ErrDamaged) {
				t.Fatalf("%s of page %d: %v, want that it is damaged", what, page, err)
			}

			if err != nil {
				refused[fmt.Sprintf("%s of kind %d", what, kind)]++
			}
		}
	}

	for _, want := range []string{"id of kind 1", "id of kind 2", "flags of kind 1", "flags of kind 2", "count of kind 1",
		"count of kind 2", "element of kind 1"} {
		if refused[want] == 0 {
			t.Errorf("no page was refused for %s: %v", want, refused)
		}
	}
}

// The meta pages say where the database begins and which of them is newer. bbolt opens a database with one of them, so a
// changed one would show an older database. The fields are those of bbolt's meta (db.go).
func TestInspect_refusesChangedMetaPages(t *testing.T) {
	t.Parallel()

	snapshot := whole(t)
	path := filepath.Join(t.TempDir(), "db")

	for page := range 2 {
		for field, at := range map[string]int{"flags": 12, "root": 16, "sequence": 24, "freelist": 32, "pages": 40, "transaction": 48,
			"checksum": 56} {
			damaged := bytes.Clone(snapshot[:len(snapshot)-sha256.Size])
			damaged[page*pageSize+16+at] ^= 2

			if err := os.WriteFile(path, summed(damaged), 0o600); err != nil {
				t.Fatal(err)
			}

			want := fmt.Sprintf("the checksum of page %d does not match", page)
			if _, err := backup.Inspect(t.Context(), path); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of page %d: %v, want that %s", field, page, err, want)
			}
		}
	}
}

func TestInspect_refusesWhatIsNoDatabaseOfEtcd(t *testing.T) {
	t.Parallel()

	snapshot := whole(t)

	other := filepath.Join(t.TempDir(), "other")

	db, err := bolt.Open(other, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	for name, path := range map[string]string{
		"empty": written(t, nil), "no database": written(t, bytes.Repeat([]byte("x"), 1<<16)),
		"cut at a page": written(t, snapshot[:20*pageSize]),
		"cut in a page": written(t, snapshot[:20*pageSize+100]), "longer": written(t, append(bytes.Clone(snapshot), 0)),
		"of another program": other,
	} {
		if _, err := backup.Inspect(t.Context(), path); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v, want that it is damaged", name, err)
		}
	}

	if _, err := backup.Inspect(t.Context(), filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
