package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

const bundle = "cluster:\n  id: secret-of-the-cluster\n"

func TestSecrets_areStoredBesideTheSnapshot(t *testing.T) {
	t.Parallel()

	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		sealing backup.Sealing
		keys    backup.Keys
	}{
		"recipients": {backup.Sealing{Compress: true, Recipients: []string{identity.Recipient().String()}},
			backup.Keys{Identities: []string{identity.String()}}},
		"passphrase": {backup.Sealing{Passphrase: "correct horse"}, backup.Keys{Passphrase: "correct horse"}},
	} {
		a, s := archive(t)

		record, err := a.Take(t.Context(),
			backup.Request{At: taken, Sealing: test.sealing, Secrets: []byte(bundle), Source: inPieces(whole(t), 5000)})
		if err != nil {
			t.Fatal(name, err)
		}

		stem, _, _ := strings.Cut(record.Key, ".db")
		if record.Secrets.Key != stem+".secrets.yaml.age" ||
			bytes.Contains(read(t, s, record.Secrets.Key, store.Range{}), []byte("secret-of")) {
			t.Errorf("%s: recorded %+v", name, record.Secrets)
		}

		if secrets, err := a.Secrets(t.Context(), record.Key, test.keys); err != nil || string(secrets) != bundle {
			t.Errorf("%s: the secrets are %q (%v)", name, secrets, err)
		}

		if _, err := a.Secrets(t.Context(), record.Key, backup.Keys{}); !errors.Is(err, backup.ErrLocked) {
			t.Errorf("%s: %v, want that they are locked", name, err)
		}

		untouched(t, s, 3)

		if entries, err := a.List(t.Context()); err != nil || len(entries) != 1 || !reflect.DeepEqual(*entries[0].Record, record) {
			t.Errorf("%s: listed %+v (%v), want the snapshot alone", name, entries, err)
		}

		if err := a.Remove(t.Context(), record.Key); err != nil {
			t.Error(name, err)
		}

		untouched(t, s, 0)
	}
}

// The record of a copied snapshot speaks of the copy: who imports that and removes it must not
// remove the original.
func TestRecorded_ofACopyIsOfTheCopy(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	sealing := sealings(t)[".db.age"]

	original, err := a.Take(t.Context(),
		backup.Request{At: taken, Sealing: sealing.Sealing, Secrets: []byte(bundle), Source: inPieces(whole(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	copied := func(key string) string { return strings.Replace(key, "x/y/", "copies/", 1) }

	for _, key := range []string{original.Key, original.Key + ".json", original.Secrets.Key} {
		if key == original.Secrets.Key {
			if record, err := a.Recorded(t.Context(), copied(original.Key)); err != nil || record.Key != copied(original.Key) ||
				record.Secrets != (backup.Secrets{}) {
				t.Errorf("a copy without its secrets has the record %+v (%v)", record, err)
			}
		}

		if _, err := s.Put(t.Context(), copied(key), bytes.NewReader(read(t, s, key, store.Range{}))); err != nil {
			t.Fatal(err)
		}
	}

	of := a
	of.Prefix = "copies"

	entries, err := of.List(t.Context())
	if err != nil || len(entries) != 1 || entries[0].Record.Key != copied(original.Key) ||
		entries[0].Record.Secrets.Key != copied(original.Secrets.Key) {
		t.Fatalf("listed %+v (%v)", entries, err)
	}

	if secrets, err := of.Secrets(t.Context(), entries[0].Record.Key, sealing.keys); err != nil ||
		string(secrets) != bundle {
		t.Errorf("the secrets are %q (%v)", secrets, err)
	}

	if err := of.Remove(t.Context(), entries[0].Record.Key); err != nil {
		t.Error(err)
	}

	untouched(t, s, 3)

	if err := a.Confirm(t.Context(), original.Key, original.Size, original.Checksum); err != nil {
		t.Errorf("the original: %v", err)
	}
}

func TestSecrets_needEncryption(t *testing.T) {
	t.Parallel()

	a, s := archive(t)

	for _, sealing := range []backup.Sealing{{}, {Compress: true}} {
		if _, err := a.Take(t.Context(),
			backup.Request{At: taken, Sealing: sealing, Secrets: []byte(bundle), Source: inPieces(whole(t), 5000)}); err == nil {
			t.Errorf("secrets are stored with %+v", sealing)
		}
	}

	if _, err := a.Secrets(t.Context(), key(ours, 0, "aaaaaa"), backup.Keys{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("secrets that are not there: %v", err)
	}

	untouched(t, s, 0)
}

func TestRetain_removesSecretsToo(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	sealing := sealings(t)[".db.age"]

	for i := range 3 {
		r := backup.Request{At: taken.Add(time.Duration(i) * time.Hour), Sealing: sealing.Sealing, Secrets: []byte(bundle),
			Source: inPieces(whole(t), 5000)}
		if _, err := a.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}

	if done, err := a.Retain(t.Context(), backup.Retention{Count: 1}, "", taken.Add(3*time.Hour)); err != nil ||
		done.Left != 1 || len(done.Removed) != 2 {
		t.Errorf("%+v (%v)", done, err)
	}

	untouched(t, s, 3)
}

// refusing is a store that takes no objects whose keys end so.
type refusing struct {
	store.Store
	suffix string
}

var errFull = errors.New("the bucket is full")

func (r refusing) Put(ctx context.Context, key string, body io.Reader) (store.Object, error) {
	if strings.HasSuffix(key, r.suffix) {
		return store.Object{}, errFull
	}

	return r.Store.Put(ctx, key, body)
}

// The store fails at each object of a snapshot in turn.
func TestTake_leavesNoPartOfASnapshot(t *testing.T) {
	t.Parallel()

	sealing := sealings(t)[".db.age"]

	for _, suffix := range []string{".db.age", ".secrets.yaml.age", ".json"} {
		a, s := archive(t)
		a.Store = refusing{s, suffix}

		r := backup.Request{At: taken, Sealing: sealing.Sealing, Secrets: []byte(bundle), Source: inPieces(whole(t), 5000)}
		if _, err := a.Take(t.Context(), r); !errors.Is(err, errFull) {
			t.Errorf("%s: %v, want that the bucket is full", suffix, err)
		}

		untouched(t, s, 0)
	}
}

// A snapshot whose secrets are those of another run does not rebuild its cluster.
func TestSecrets_refuseEveryFlippedByte(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	sealing := sealings(t)[".db.age"]

	record, err := a.Take(t.Context(),
		backup.Request{At: taken, Sealing: sealing.Sealing, Secrets: []byte(bundle), Source: inPieces(whole(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	stored := read(t, s, record.Secrets.Key, store.Range{})
	path := filepath.Join(s.Path, filepath.FromSlash(record.Secrets.Key))

	for _, recorded := range []bool{true, false} {
		for at := range stored {
			flipped := bytes.Clone(stored)
			flipped[at] ^= 1

			for what, data := range map[string][]byte{"flipped": flipped, "cut": stored[:at]} {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}

				if secrets, err := a.Secrets(t.Context(), record.Key, sealing.keys); err == nil {
					t.Fatalf("byte %d of %d %s (recorded: %t) opens as %q", at, len(stored), what, recorded, secrets)
				}
			}
		}

		if err := s.Delete(t.Context(), record.Key+".json"); err != nil {
			t.Fatal(err)
		}
	}
}
