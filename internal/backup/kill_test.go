package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"

	bolt "go.etcd.io/bbolt"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// What a process of this test that will be killed finds in its environment.
const (
	victim         = "TALOSOP_TEST_VICTIM" // take or fetch
	victimStore    = "TALOSOP_TEST_STORE"  // a folder, or the endpoint of an S3 server
	victimScratch  = "TALOSOP_TEST_SCRATCH"
	victimSnapshot = "TALOSOP_TEST_SNAPSHOT" // a file to take, or the key to fetch
	victimIdentity = "TALOSOP_TEST_IDENTITY"
	victimPoint    = "TALOSOP_TEST_POINT" // the number of the point to wait at for the end, or empty
)

// TestMain is the victim where it is asked to be one.
func TestMain(m *testing.M) {
	if os.Getenv(victim) == "" {
		m.Run()
		return
	}

	if err := die(context.Background()); err != nil {
		panic(err)
	}
}

// die takes or fetches a snapshot, and waits for its end at the point it was told.
func die(ctx context.Context) error {
	a := backup.Archive{Cluster: "prod", Mark: ours, Scratch: os.Getenv(victimScratch)}

	if to := os.Getenv(victimStore); filepath.IsAbs(to) {
		a.Store = file.Store{Path: to}
	} else {
		s, err := s3.New(ctx, s3.Config{
			Bucket: bucket, Region: "us-east-1", Endpoint: to, PathStyle: true, InsecureSkipTLSVerify: true,
			Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		})
		if err != nil {
			return err
		}

		a.Store = s
	}

	last, _ := strconv.Atoi(os.Getenv(victimPoint)) // none is never reached
	p := &points{Store: a.Store, last: int64(last)}
	a.Store = p

	identity, err := age.ParseX25519Identity(os.Getenv(victimIdentity))
	if err != nil {
		return err
	}

	if os.Getenv(victim) == "take" {
		_, err := a.Take(ctx, backup.Request{
			At: taken, Sealing: backup.Sealing{Recipients: []string{identity.Recipient().String()}}, Secrets: []byte(bundle),
			Source: fromFile(os.Getenv(victimSnapshot)),
		})

		return err
	}

	snapshot, err := a.Fetch(ctx, os.Getenv(victimSnapshot), backup.Keys{Identities: []string{identity.String()}})
	if err != nil {
		return err
	}

	if _, err := io.Copy(&pausing{p, io.Discard, nil, mib}, snapshot.Reader()); err != nil {
		return err
	}

	return snapshot.Close()
}

// points is a store that counts what is done with it, and waits for ever at one of these
// points, after saying so.
type points struct {
	store.Store
	last, passed int64
}

func (p *points) pass() {
	if atomic.AddInt64(&p.passed, 1) == p.last {
		fmt.Println("here")
		select {}
	}
}

// pausing passes a point whenever so many more bytes went by, and at the end of a reader.
type pausing struct {
	*points
	to    io.Writer
	from  io.Reader
	every int
}

func (p *pausing) Write(data []byte) (int, error) {
	p.pass()

	return p.to.Write(data)
}

func (p *pausing) Read(data []byte) (int, error) {
	n, err := p.from.Read(data[:min(len(data), p.every)])
	if errors.Is(err, io.EOF) || n == p.every {
		p.pass()
	}

	return n, err
}

func (p *points) Put(ctx context.Context, key string, body io.Reader) (store.Object, error) {
	p.pass()

	object, err := p.Store.Put(ctx, key, &pausing{p, nil, body, 32 << 10})
	p.pass()

	return object, err
}

func (p *points) Open(ctx context.Context, key string, part store.Range) (io.ReadCloser, error) {
	p.pass()

	body, err := p.Store.Open(ctx, key, part)
	if err != nil {
		return nil, err
	}

	return struct {
		io.Reader
		io.Closer
	}{&pausing{p, nil, body, 32 << 10}, body}, nil
}

// scene is what a victim works with.
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

	return scene{backup.Archive{Store: s, Cluster: "prod", Mark: ours, Scratch: t.TempDir()}, to, largeSnapshot(t, size), identity}
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
	cmd.Env = append(os.Environ(), victim+"="+verb, victimStore+"="+s.to, victimScratch+"="+s.Scratch, victimSnapshot+"="+snapshot,
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
		At: taken.Add(time.Hour), Sealing: backup.Sealing{Recipients: []string{s.identity.Recipient().String()}}, Secrets: []byte(bundle),
		Source: inPieces(whole(t), 5000),
	})
	if err != nil {
		t.Fatal(what, err)
	}

	entries, err := s.List(t.Context())
	if err != nil || len(entries) == 0 || len(entries) > 2 || entries[len(entries)-1].Key != record.Key {
		t.Errorf("%s: listed %+v (%v)", what, entries, err)
	}

	for _, entry := range entries {
		snapshot, err := s.Fetch(t.Context(), entry.Key, backup.Keys{Identities: []string{s.identity.String()}})
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

// A run that is killed at any point leaves nothing half done that is listed, and what it
// leaves is gone after the next.
func TestTakeKilledAtEachPoint(t *testing.T) {
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
func TestTakeKilledAtEachRequest(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := newScene(t, opened(t, b.config()), b.proxy.URL, 9)

	for request := 1; ; request++ {
		for _, f := range []fault{stalled, lost} {
			if !s.killAtRequest(t, b, request, f) {
				if request <= 9 {
					t.Errorf("a run has %d requests, want 9: two parts, with what begins and ends them, two objects more, and three looks at them", request-1)
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
	b.failing(nil)
	left(t, s.Scratch, 0)

	return true
}

func TestFetchKilledAtEachPoint(t *testing.T) {
	t.Parallel()

	to := t.TempDir()
	s := newScene(t, file.Store{Path: to}, to, 1)

	record, err := s.Take(t.Context(), backup.Request{
		At: taken, Sealing: backup.Sealing{Recipients: []string{s.identity.Recipient().String()}}, Secrets: []byte(bundle), Source: fromFile(s.snapshot),
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
