package backup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

func TestPassphrase_opensWhatItSealed(t *testing.T) {
	t.Parallel()

	a, _ := archive(t)

	record, err := a.Take(t.Context(),
		backup.Request{At: taken, Sealing: backup.Sealing{Passphrase: "correct horse"}, Source: inPieces(whole(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	for name, keys := range map[string]backup.Keys{"none": {}, "another": {Passphrase: "wrong horse"},
		"an identity": {Identities: []string{other.String()}}} {
		if _, err := a.Fetch(t.Context(), record.Key, keys); !errors.Is(err, backup.ErrLocked) ||
			strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: %v, want that it is locked", name, err)
		}
	}

	snapshot, err := a.Fetch(t.Context(), record.Key, backup.Keys{Passphrase: "correct horse"})
	if err != nil {
		t.Fatal(err)
	}

	same(t, snapshot)
	left(t, a.Scratch, 0)
}

// What `talosctl etcd snapshot` wrote has no record and another name.
func TestFetch_opensASnapshotOfTalosctl(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	if _, err := s.Put(t.Context(), "db.snapshot", bytes.NewReader(whole(t))); err != nil {
		t.Fatal(err)
	}

	known := backup.Keys{SHA256: sumOf(whole(t))}

	snapshot, err := a.Fetch(t.Context(), "db.snapshot", known)
	if err != nil || snapshot.Database.Revision != fixtureKeys+1 || snapshot.Record != nil {
		t.Fatalf("fetched %+v (%v)", snapshot, err)
	}

	same(t, snapshot)

	// The same as a file that no store knows.
	if snapshot, err = fetchFile(t, backup.Archive{Mark: ours, Scratch: a.Scratch},
		filepath.Join(s.Path, "db.snapshot"), backup.Keys{SHA256: strings.ToUpper(known.SHA256)}); err != nil {
		t.Fatal(err)
	}

	same(t, snapshot)

	// A restore has to name the snapshot, and the error says how.
	var untrusted *backup.UntrustedError
	if _, err = a.Fetch(t.Context(), "db.snapshot", backup.Keys{}); !errors.As(err, &untrusted) ||
		untrusted.SHA256 != known.SHA256 {
		t.Errorf("unasked: %v", err)
	}

	if _, err = a.Fetch(t.Context(), "db.snapshot", backup.Keys{SHA256: sumOf(nil)}); !errors.Is(err, backup.ErrOtherSum) {
		t.Errorf("another one: %v", err)
	}
}

// sumOf is what sha256sum prints.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// Without the right to list the bucket, AWS answers for a missing record as for one that may not be read. It
// returns the snapshot itself.
func TestFetch_needsNoRightToTheRecord(t *testing.T) {
	t.Parallel()

	denied := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>")
	}

	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/"+bucket+"/db.snapshot" {
			denied(w)
			return
		}

		w.Header().Set("Content-Length", strconv.Itoa(len(whole(t))))
		_, _ = w.Write(whole(t))
	})
	a := backup.Archive{Store: s, Mark: ours, Scratch: t.TempDir()}

	snapshot, err := a.Fetch(t.Context(), "db.snapshot", backup.Keys{SHA256: sumOf(whole(t))})
	if err != nil || snapshot.Record != nil || !errors.Is(snapshot.RecordErr, store.ErrDenied) {
		t.Fatalf("fetched %+v (%v)", snapshot, err)
	}

	same(t, snapshot)

	if _, err := a.Fetch(t.Context(), "other.snapshot", backup.Keys{}); !errors.Is(err, store.ErrDenied) {
		t.Errorf("a snapshot that may not be read: %v", err)
	}
}

// A database that was copied from a member's disk has no sum, and may have been written to
// meanwhile.
func TestFetch_refusesACopyOfADatabase(t *testing.T) {
	t.Parallel()

	database := written(t, whole(t)[:len(whole(t))-sha256.Size])

	_, err := fetchFile(t, backup.Archive{Scratch: t.TempDir()}, database,
		backup.Keys{SHA256: sumOf(whole(t)[:len(whole(t))-sha256.Size])})
	if !errors.Is(err, backup.ErrIncomplete) || !strings.Contains(err.Error(), "talosctl etcd snapshot") {
		t.Errorf("error %v, want one that says how to take a snapshot", err)
	}
}

// fetchFile fetches a file of this machine: one of `talosctl etcd snapshot`, or one that was copied out of a store,
// whose record may lie beside it.
func fetchFile(t *testing.T, a backup.Archive, path string, keys backup.Keys) (*backup.Snapshot, error) {
	t.Helper()

	a.Store = file.Store{Path: filepath.Dir(path)}

	return a.Fetch(t.Context(), filepath.Base(path), keys)
}

// A stored snapshot that was copied to another folder with its record is opened with it.
func TestFetch_readsTheRecordBesideAFile(t *testing.T) {
	t.Parallel()

	for extension, sealing := range sealings(t) {
		a, s := archive(t)

		record, err := a.Take(t.Context(),
			backup.Request{At: taken, Sealing: sealing.Sealing, Source: inPieces(whole(t), 5000)})
		if err != nil {
			t.Fatal(err)
		}

		folder := t.TempDir()
		for _, key := range []string{record.Key, record.Key + ".json"} {
			if err := os.WriteFile(filepath.Join(folder, filepath.Base(key)), read(t, s, key, store.Range{}),
				0o600); err != nil {
				t.Fatal(err)
			}
		}

		snapshot, err := fetchFile(t, a, filepath.Join(folder, filepath.Base(record.Key)), sealing.keys)
		record.Key = filepath.Base(record.Key)

		if err != nil || snapshot.Record == nil || !reflect.DeepEqual(*snapshot.Record, record) {
			t.Fatalf("%s: opened %+v (%v), want %+v", extension, snapshot, err, record)
		}

		same(t, snapshot)
	}
}

// The secrets of etcd's database are of use with the cluster's own keys alone.
func TestFetch_refusesASnapshotOfAnotherCluster(t *testing.T) {
	t.Parallel()

	a, s := archive(t)
	other := a
	other.Mark = theirs

	record, err := other.Take(t.Context(), backup.Request{At: taken, Source: inPieces(whole(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	if _, err := a.Fetch(t.Context(), record.Key, backup.Keys{}); !errors.Is(err, backup.ErrForeign) {
		t.Errorf("error %v, want that it is of another cluster", err)
	}

	// The record shows it when the key does not.
	if err := backup.Belongs("renamed", &record, ours); !errors.Is(err, backup.ErrForeign) {
		t.Errorf("by its record: %v", err)
	}

	if err := errors.Join(backup.Belongs("renamed", nil, ours), backup.Belongs(record.Key, &record, theirs)); err != nil {
		t.Error(err)
	}

	unmarked := backup.Archive{Store: s, Scratch: a.Scratch, RecordKeys: recordKeys}

	snapshot, err := unmarked.Fetch(t.Context(), record.Key, backup.Keys{})
	if err != nil {
		t.Fatal(err)
	}

	same(t, snapshot)
}
