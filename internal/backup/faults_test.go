package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// What a server or the network does once is repeated, also where the request had worked and
// only its answer was lost.
func TestS3_survivesTransientFaults(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		size int
		kind func(*http.Request) bool
	}{
		"put": {100, isPut}, "create": {9 * mib, isCreate}, "part": {9 * mib, isPart}, "complete": {9 * mib, isComplete},
		"head": {100, isHead},
	} {
		for fate, f := range map[string]fault{"unavailable": unavailable, "cut": cut, "lost": lost} {
			t.Run(name+" "+fate, func(t *testing.T) {
				t.Parallel()

				b := newBucketServer(t)
				s := opened(t, b.config())

				b.failing(first(1, test.kind, f))

				object, err := s.Put(t.Context(), "prod/x", bytes.NewReader(content(test.size)))
				if err != nil || object.Size != int64(test.size) {
					t.Fatalf("stored %+v, %v", object, err)
				}

				b.failing(nil)

				if got := read(t, s, "prod/x", store.Range{}); !bytes.Equal(got, content(test.size)) {
					t.Error("other bytes came back")
				}

				untouched(t, s, 1)
			})
		}
	}
}

// A server that fails permanently, at each request of an upload in turn.
func TestS3_keepsNothingWhereTheServerFails(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := opened(t, b.config())

	for name, kind := range map[string]func(*http.Request) bool{"create": isCreate, "part": isPart,
		"complete": isComplete} {
		b.failing(func(r *http.Request) fault {
			if kind(r) {
				return refused
			}

			return passed
		})

		if _, err := s.Put(t.Context(), "prod/"+name, bytes.NewReader(content(17*mib))); err == nil {
			t.Errorf("%s: stored by a server that is full", name)
		}

		b.failing(nil)
		untouched(t, s, 0)
	}

	if n := len(b.seen(isComplete)); n != 1 {
		t.Errorf("a full server was asked %d times to complete, want once: only what may pass is repeated", n)
	}
}

// A server that takes requests and does not answer blocks no call beyond the deadline.
func TestS3_keepsNothingWhereTheServerStalls(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := opened(t, b.config())

	for name, kind := range map[string]func(*http.Request) bool{"part": isPart, "complete": isComplete} {
		ctx, cancel := context.WithCancel(t.Context())

		b.failing(func(r *http.Request) fault {
			if !kind(r) {
				return passed
			}

			cancel()

			return stalled
		})

		if _, err := s.Put(ctx, "prod/"+name, bytes.NewReader(content(9*mib))); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want that it was given up", name, err)
		}

		b.failing(nil)
		untouched(t, s, 0)
	}
}

// A server that stops reading does not block a call until the deadline: another connection is tried.
func TestS3_givesUpAServerThatDoesNotRead(t *testing.T) {
	t.Parallel()

	var puts, connections atomic.Int32

	goOn := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPut(r) && puts.Add(1) == 1 {
			<-goOn
			return
		}

		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusInsufficientStorage)
	}))
	// What does not fit into the buffers of the two sides must be read.
	server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if tcp, ok := conn.(*net.TCPConn); ok && connections.Add(1) == 1 {
			if err := tcp.SetReadBuffer(4096); err != nil {
				t.Error(err)
			}
		}

		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(goOn) })

	s := opened(t, s3.Config{
		Bucket: bucket, Endpoint: server.URL, PathStyle: true,
		Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		Stall:       3 * time.Second,
	})

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	if _, err := s.Put(ctx, "prod/x", bytes.NewReader(content(8*mib-1))); err == nil || ctx.Err() != nil ||
		puts.Load() != 2 {
		t.Errorf("error %v after %d requests, want that of the second", err, puts.Load())
	}
}

// A completion that worked without an answer, and a user who stopped waiting for one.
func TestS3_keepsNothingOfACanceledCompletion(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := opened(t, b.config())

	ctx, cancel := context.WithCancel(t.Context())
	b.failing(func(r *http.Request) fault {
		if isHead(r) && ctx.Err() == nil {
			cancel()
		}

		return passed
	})

	if _, err := s.Put(ctx, "prod/x", bytes.NewReader(content(20*mib))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was canceled", err)
	}

	b.failing(nil)
	untouched(t, s, 0)
}

// A completion that worked, whose answer was lost and whose repetition finds no upload any
// more, and a server that then cannot say what it holds.
func TestS3_keepsNothingOfACompletionWithoutAnAnswer(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := opened(t, b.config())

	var completed, asked bool

	b.failing(func(r *http.Request) fault {
		switch {
		case isComplete(r) && !completed:
			completed = true
			return lost
		case isComplete(r):
			return vanished
		case isHead(r) && !asked:
			asked = true
			return refused
		default:
			return passed
		}
	})

	if _, err := s.Put(t.Context(), "prod/x", bytes.NewReader(content(9*mib))); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v, want that there is no such upload", err)
	}

	b.failing(nil)
	untouched(t, s, 0)
}

// A killed run cannot clean up; the next one does.
func TestSweep_removesWhatKilledRunsLeft(t *testing.T) {
	t.Parallel()

	t.Run("s3", func(t *testing.T) {
		t.Parallel()

		b := newBucketServer(t)
		s := opened(t, b.config())

		// From the first part on nothing reaches the server any more, as after a kill.
		var dead bool

		b.failing(func(r *http.Request) fault {
			if dead = dead || isPart(r); dead {
				return refused
			}

			return passed
		})

		if _, err := s.Put(t.Context(), "prod/etcd-x", bytes.NewReader(content(20*mib))); err == nil {
			t.Fatal("stored by a dead server")
		}

		b.failing(nil)
		sweeps(t, s)
	})

	t.Run("file", func(t *testing.T) {
		t.Parallel()

		s := file.Store{Path: t.TempDir()}
		if _, err := s.Put(t.Context(), "prod/keep", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}

		left := filepath.Join(s.Path, "prod", ".talosop-partial-etcd-x-123")
		if err := os.WriteFile(left, nil, 0o600); err != nil {
			t.Fatal(err)
		}

		sweeps(t, s)

		if err := s.Delete(t.Context(), "prod/keep"); err != nil {
			t.Error(err)
		}

		untouched(t, s, 0)
	})
}

// sweeps checks that a store with one rest below prod/etcd- removes that one alone.
func sweeps(t *testing.T, s store.Store) {
	t.Helper()

	for _, test := range []struct {
		prefix string
		before time.Time
		want   int
	}{
		{"other/", time.Now().Add(time.Hour), 0}, {"prod/etcd-", time.Now().Add(-time.Hour), 0},
		{"prod/etcd-", time.Now().Add(time.Hour), 1},
		{"prod/etcd-", time.Now().Add(time.Hour), 0},
	} {
		if swept, err := s.Sweep(t.Context(), test.prefix, begunBefore(test.before)); err != nil || swept != test.want {
			t.Errorf("%d swept below %s (%v), want %d", swept, test.prefix, err, test.want)
		}
	}
}

func TestS3_refusesAnObjectThatIsNotWhatWasSent(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := opened(t, b.config())

	for name, size := range map[string]int{"single": 100, "parts": 9 * mib} {
		// The disk of the server loses bytes before it is asked.
		b.failing(func(r *http.Request) fault {
			if isHead(r) {
				if err := os.Truncate(filepath.Join(b.data, "prod", name), 50); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}

			return passed
		})

		if _, err := s.Put(t.Context(), "prod/"+name, bytes.NewReader(content(size))); !errors.Is(err, store.ErrDiffers) {
			t.Errorf("%s: %v, want that it differs", name, err)
		}
	}

	b.failing(nil)
	untouched(t, s, 0)
}
