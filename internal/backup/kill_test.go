package backup_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"filippo.io/age"
	bolt "go.etcd.io/bbolt"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// scene is the environment of a victim.
type scene struct {
	backup.Archive
	to       string
	snapshot string
	identity *age.X25519Identity
}

// newScene has a snapshot of that many MiB.
func newScene(t *testing.T, s store.Store, to string, size int) scene {
	t.Helper()

	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	return scene{backup.Archive{Store: s, Cluster: "prod", Mark: ours, RecordKeys: recordKeys, Scratch: t.TempDir()}, to,
		largeSnapshot(t, size), identity}
}

// largeSnapshot is a file of that many MiB as etcd makes them, with its sum.
func largeSnapshot(t *testing.T, size int) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "db")

	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}

	err = db.Update(func(tx *bolt.Tx) error {
		keys, err := tx.CreateBucket([]byte("key"))
		for i := 0; i < size && err == nil; i++ {
			err = keys.Put(revision(i+2), content(mib-pageSize))
		}

		return err
	})

	to := path + ".snapshot"
	if err = errors.Join(err, db.View(func(tx *bolt.Tx) error { return tx.CopyFile(to, 0o600) }), db.Close()); err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(to)
	if err = errors.Join(err, os.WriteFile(to, summed(data), 0o600)); err != nil {
		t.Fatal(err)
	}

	return to
}

// start runs a victim.
func (s scene) start(t *testing.T, verb, snapshot, point string) (*exec.Cmd, io.Reader) {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+verb, victimStore+"="+s.to, victimScratch+"="+s.Scratch,
		victimSnapshot+"="+snapshot,
		victimIdentity+"="+s.identity.String(), victimPoint+"="+point)
	cmd.Stderr = os.Stderr

	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}

	return cmd, out
}

// kill ends a victim at a point of its work. It returns false when the work has no such
// point any more.
func (s scene) kill(t *testing.T, verb, snapshot string, point int) bool {
	t.Helper()

	cmd, out := s.start(t, verb, snapshot, strconv.Itoa(point))

	if _, err := io.ReadFull(out, make([]byte, len("here\n"))); errors.Is(err, io.EOF) {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}

		return false
	} else if err != nil {
		t.Error(err)
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}

	_ = cmd.Wait() // says that it was killed

	left(t, s.Scratch, 0) // what is in clear text is gone with the process

	return true
}

// again is the run after a killed one: all that is listed is whole, what is half stored is
// swept, and nothing is left when all that was listed is removed.
func (s scene) again(t *testing.T, what string) {
	t.Helper()

	if _, err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Error(what, err)
	}

	record, err := s.Take(t.Context(), backup.Request{
		At: taken.Add(time.Hour), Sealing: backup.Sealing{Recipients: []string{s.identity.Recipient().String()}},
		Secrets: []byte(bundle),
		Source:  inPieces(whole(t), 5000),
	})
	if err != nil {
		t.Fatal(what, err)
	}

	entries, err := s.List(t.Context())
	if err != nil || len(entries) == 0 || len(entries) > 2 || entries[len(entries)-1].Key != record.Key {
		t.Errorf("%s: listed %+v (%v)", what, entries, err)
	}

	for _, entry := range entries {
		keys := backup.Keys{Identities: []string{s.identity.String()}}
		if entry.Record == nil { // it was killed before it recorded the snapshot
			keys.SHA256 = sumOf(read(t, s.Store, entry.Key, store.Range{}))
		}

		snapshot, err := s.Fetch(t.Context(), entry.Key, keys)
		if err != nil {
			t.Errorf("%s: half a snapshot is listed: %v", what, err)
			continue
		}

		if entry.Record != nil && entry.Record.Secrets.Key == "" {
			t.Errorf("%s: recorded without its secrets: %+v", what, entry.Record)
		}

		if err := errors.Join(snapshot.Close(), s.Remove(t.Context(), entry.Key)); err != nil {
			t.Error(what, err)
		}
	}

	untouched(t, s.Store, 0)
}

// A run that is killed at any point lists nothing incomplete, and its leftovers are gone after the next run.
func TestTake_killedAtEachPoint(t *testing.T) {
	t.Parallel()

	to := t.TempDir()
	s := newScene(t, file.Store{Path: to}, to, 1)
	killed := 0

	// Every fourth point of the many in the middle, and all at the end.
	for point := 1; s.kill(t, "take", s.snapshot, point); point++ {
		s.again(t, fmt.Sprintf("point %d", point))

		killed++

		if point > 4 && point < 28 {
			point += 3
		}
	}

	if killed < 10 {
		t.Errorf("killed at %d points, want at least 10", killed)
	}
}

// The requests of an upload in parts, of the secrets and of the record: killed before the
// server saw one, and after it did what was asked.
func TestTake_killedAtEachRequest(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := newScene(t, opened(t, b.config()), b.proxy.URL, 9)

	for request := 1; ; request++ {
		for _, f := range []fault{stalled, lost} {
			if !s.killAtRequest(t, b, request, f) {
				if request <= 9 {
					t.Errorf("a run has %d requests, want 9: two parts, with what begins and ends them, two objects more, and three "+
						"looks at them", request-1)
				}

				return
			}

			s.again(t, fmt.Sprintf("request %d, fault %d", request, f))
		}
	}
}

// killAtRequest returns false when there is no such request any more.
func (s scene) killAtRequest(t *testing.T, b *bucketServer, request int, f fault) bool {
	t.Helper()

	reached := make(chan struct{})

	b.Answered(func() { close(reached) })
	b.failing(func(*http.Request) fault {
		switch request--; {
		case request == 0:
			if f == stalled {
				close(reached)
			}

			return f
		case request < 0:
			return stalled // nothing follows a kill
		default:
			return passed
		}
	})

	// A proxy of its own: a request that the killed process sent may be read after its death, and must not be passed on
	// as one of the run that follows.
	proxy := b.AnotherProxy(t)
	s.to = proxy.URL
	cmd, _ := s.start(t, "take", s.snapshot, "")
	ended := make(chan error, 1)

	go func() { ended <- cmd.Wait() }()

	select {
	case err := <-ended:
		b.failing(nil)

		if err != nil {
			t.Error(err)
		}

		return false
	case <-reached:
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}

	<-ended
	proxy.Close()
	b.failing(nil)
	left(t, s.Scratch, 0)

	return true
}

func TestFetch_killedAtEachPoint(t *testing.T) {
	t.Parallel()

	to := t.TempDir()
	s := newScene(t, file.Store{Path: to}, to, 1)

	record, err := s.Take(t.Context(), backup.Request{
		At: taken, Sealing: backup.Sealing{Recipients: []string{s.identity.Recipient().String()}}, Secrets: []byte(bundle),
		Source: fromFile(s.snapshot),
	})
	if err != nil {
		t.Fatal(err)
	}

	killed := 0

	for point := 1; s.kill(t, "fetch", record.Key, point); point++ {
		killed++

		if point > 4 {
			point += 4
		}
	}

	if killed < 10 {
		t.Errorf("killed at %d points, want at least 10", killed)
	}

	untouched(t, s.Store, 3)

	snapshot, err := s.Fetch(t.Context(), record.Key, backup.Keys{Identities: []string{s.identity.String()}})
	if err = errors.Join(err, s.Confirm(t.Context(), record.Key, record.Size, record.Checksum)); err != nil {
		t.Fatal(err)
	}

	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
}
