package backup_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Each place of what is stored, with and without its record: a header, ciphertext or pages,
// a trailer.
func TestFetchRefusesEveryFlippedByte(t *testing.T) {
	t.Parallel()

	for extension, sealing := range sealings(t) {
		t.Run(extension, func(t *testing.T) {
			t.Parallel()

			a, s := archive(t)

			record, err := a.Take(t.Context(), backup.Request{At: taken, Sealing: sealing.Sealing, Source: inPieces(whole(t), 5000)})
			if err != nil {
				t.Fatal(err)
			}

			path := filepath.Join(s.Path, filepath.FromSlash(record.Key))
			stored := read(t, s, record.Key, store.Range{})

			refuses := func(what string, at int, data []byte, recorded bool) {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}

				snapshot, err := a.Fetch(t.Context(), record.Key, sealing.keys)
				if err == nil && recorded {
					t.Fatalf("%s %d of %d bytes is opened", what, at, len(stored))
				} else if err == nil {
					same(t, snapshot) // a byte that nothing depends on, such as a flag without a meaning
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
