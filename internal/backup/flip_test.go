package backup_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// stored is a snapshot in a folder, where it can be changed.
type stored struct {
	backup.Archive
	record backup.Record
	keys   backup.Keys
	path   string
	data   []byte
	// recorded is whether it has its record.
	recorded bool
}

func newStored(t *testing.T, extension string) stored {
	t.Helper()

	a, s := archive(t)
	sealing := sealings(t)[extension]

	record, err := a.Take(t.Context(),
		backup.Request{At: taken, Sealing: sealing.Sealing, Source: inPieces(whole(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	return stored{a, record, sealing.keys, filepath.Join(s.Path, filepath.FromSlash(record.Key)),
		read(t, s, record.Key, store.Range{}), true}
}

// unrecorded removes the record.
func (s *stored) unrecorded(t *testing.T) {
	t.Helper()

	s.recorded = false

	if err := s.Store.Delete(t.Context(), s.record.Key+".json"); err != nil {
		t.Fatal(err)
	}
}

// fetch opens the snapshot after its bytes were changed to these.
func (s stored) fetch(t *testing.T, data []byte) error {
	t.Helper()

	if err := os.WriteFile(s.path, data, 0o600); err != nil {
		t.Fatal(err)
	}

	keys := s.keys
	if !s.recorded {
		keys.SHA256 = sumOf(data) // exactly these bytes are wanted
	}

	snapshot, err := s.Fetch(t.Context(), s.record.Key, keys)
	if err == nil {
		same(t, snapshot)
	}

	left(t, s.Scratch, 0)

	return err
}

// flipped is data with another byte.
func flipped(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 1

	return data
}

// places are where the parts of a stored snapshot begin, by what they are.
func places(t *testing.T, extension string, data []byte) map[string]int {
	t.Helper()

	switch extension {
	case ".db":
		return placesOfDatabase(data)
	case ".db.zst":
		// RFC 8878, 3.1.1: a magic number, the description of the frame, blocks with 3 bytes
		// before them, and a sum.
		return map[string]int{"magic": 0, "frame": 4, "block": 6, "data": 9, "middle": len(data) / 2, "sum": len(data) - 4}
	default:
		// C2SP age: lines of text, of which the last is a MAC, a nonce, chunks with tags.
		mac := bytes.Index(data, []byte("\n---")) + 1
		payload := mac + bytes.IndexByte(data[mac:], '\n') + 1

		return map[string]int{
			"version": 0, "stanza": bytes.IndexByte(data, '\n') + 1, "MAC": mac, "nonce": payload, "ciphertext": payload + 16,
			"second chunk": payload + 16 + 64<<10 + 16, "middle": (payload + len(data)) / 2, "tag": len(data) - 16,
		}
	}
}

func placesOfDatabase(data []byte) map[string]int {
	kinds := map[uint16]string{1: "branch page", 2: "leaf page", 4: "meta page", 16: "freelist page"}
	places := map[string]int{"second meta page": pageSize, "sum": len(data) - 32}

	for at := 0; at+pageSize <= len(data); at += pageSize {
		kind := kinds[binary.LittleEndian.Uint16(data[at+8:])]
		if _, known := places[kind]; !known && kind != "" {
			places[kind] = at
		}
	}

	return places
}

// Each part of what is stored, with and without its record: refused whatever byte of it is
// another one, and wherever it ends.
func TestFetch_refusesEveryFlippedByte(t *testing.T) {
	t.Parallel()

	for _, extension := range []string{".db", ".db.zst", ".db.age", ".db.zst.age"} {
		t.Run(extension, func(t *testing.T) {
			t.Parallel()

			s := newStored(t, extension)
			parts := places(t, extension, s.data)

			if want := map[string]int{".db": 6}[extension]; len(parts) < want {
				t.Fatalf("the fixture has no more than %v", parts)
			}

			for _, recorded := range []bool{true, false} {
				for what, begin := range parts {
					if begin >= len(s.data) {
						continue // a small snapshot has one chunk
					}

					for at := begin; at < min(begin+20, len(s.data)); at++ {
						// Without a record a byte may differ that nothing depends on: fetch compares.
						if err := s.fetch(t, flipped(s.data, at)); err == nil && recorded {
							t.Errorf("byte %d, in the %s at %d, is another one and it opens", at, what, begin)
						}
					}

					for _, end := range []int{begin - 1, begin, begin + 1} {
						if err := s.fetch(t, s.data[:max(end, 0)]); err == nil {
							t.Errorf("it ends at %d, at the %s, and opens (recorded: %t)", end, what, recorded)
						}
					}
				}

				if err := s.fetch(t, append(bytes.Clone(s.data), 0)); err == nil {
					t.Errorf("it has a byte more and opens (recorded: %t)", recorded)
				}

				s.unrecorded(t)
			}
		})
	}
}

// What etcd streamed has a sum over every byte.
func TestFetch_refusesEveryFlippedPage(t *testing.T) {
	t.Parallel()

	s := newStored(t, ".db")
	s.unrecorded(t)

	for page := 0; page < len(s.data); page += pageSize {
		for _, at := range []int{0, 8, 16, pageSize / 2, pageSize - 1} {
			if at := page + at; at < len(s.data) {
				if err := s.fetch(t, flipped(s.data, at)); !errors.Is(err, backup.ErrIncomplete) {
					t.Errorf("byte %d is another one: %v", at, err)
				}
			}
		}
	}
}

// A record that is not as it was written says nothing. Without it the snapshot opens.
func TestFetch_refusesEveryFlippedByteOfTheRecord(t *testing.T) {
	t.Parallel()

	s := newStored(t, ".db")
	path := s.path + ".json"

	record, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	refuses := func(what string, at int, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}

		if _, err := s.Fetch(t.Context(), s.record.Key, s.keys); !errors.Is(err, backup.ErrRecord) {
			t.Errorf("%s %d of %d bytes: %v, want that the record is damaged", what, at, len(record), err)
		}

		entries, err := s.List(t.Context())
		if err != nil || len(entries) != 1 || entries[0].Record != nil || !errors.Is(entries[0].RecordErr, backup.ErrRecord) {
			t.Errorf("%s %d of %d bytes: listed %+v (%v)", what, at, len(record), entries, err)
		}
	}

	for at := range record {
		refuses("byte", at, flipped(record, at))
		refuses("the end at", at, record[:at])
	}

	refuses("one more than", 0, append(bytes.Clone(record), ' '))

	// That of another snapshot.
	other := newStored(t, ".db")
	if record, err = os.ReadFile(other.path + ".json"); err != nil {
		t.Fatal(err)
	}

	refuses("another of", 0, record)
	s.unrecorded(t)

	if err := s.fetch(t, s.data); err != nil {
		t.Error(err)
	}
}
