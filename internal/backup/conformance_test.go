package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// mib is also an eighth of a part of an upload to S3.
const mib = 1 << 20

// eachStore runs a test against an empty store of each kind.
func eachStore(t *testing.T, f func(t *testing.T, s store.Store)) {
	t.Helper()

	t.Run("file", func(t *testing.T) {
		t.Parallel()
		f(t, file.Store{Path: t.TempDir()})
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		f(t, opened(t, newBucketServer(t).config()))
	})
}

// content is that many bytes which compress badly and are the same in each run.
func content(size int) []byte {
	data := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(data); err != nil {
		panic(err)
	}

	return data
}

func TestStore_keepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store.Store) {
		for _, size := range []int{0, 1, 8*mib - 1, 8 * mib, 8*mib + 1, 20 * mib} {
			key, data := fmt.Sprintf("a/prod/%09d", size), content(size)

			put, err := s.Put(t.Context(), key, iotest.HalfReader(bytes.NewReader(data)))
			if err != nil {
				t.Fatal(size, err)
			}

			if put.Key != key || put.Size != int64(size) || put.Checksum == "" {
				t.Errorf("stored %+v, want %d bytes and a checksum", put, size)
			}

			head, err := s.Head(t.Context(), key)
			if err != nil || !head.Modified.Equal(put.Modified) {
				t.Errorf("the store has %+v (%v), put said %+v", head, err, put)
			}

			if head.Modified = put.Modified; head != put {
				t.Errorf("the store has %+v, put said %+v", head, put)
			}

			if got := read(t, s, key, store.Range{}); !bytes.Equal(got, data) {
				t.Errorf("%d of %d bytes came back, or others", len(got), size)
			}
		}

		if got := read(t, s, "a/prod/020971520", store.Range{Offset: 5 * mib, Length: 7}); !bytes.Equal(got,
			content(20 * mib)[5*mib:5*mib+7]) {
			t.Errorf("a part is %x", got)
		}

		if got := read(t, s, "a/prod/020971520", store.Range{Offset: 20*mib - 3}); !bytes.Equal(got,
			content(20 * mib)[20*mib-3:]) {
			t.Errorf("the end is %x", got)
		}
	})
}

func read(t *testing.T, s store.Store, key string, part store.Range) []byte {
	t.Helper()

	body, err := s.Open(t.Context(), key, part)
	if err != nil {
		t.Fatal(err)
	}

	data, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		t.Fatal(err)
	}

	return data
}

func TestStore_replacesNothing(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store.Store) {
		for _, size := range []int{100, 17 * mib} {
			key, data := fmt.Sprintf("prod/%d", size), content(size)
			if _, err := s.Put(t.Context(), key, bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}

			for _, again := range [][]byte{data, content(50), content(18 * mib)} {
				if _, err := s.Put(t.Context(), key, bytes.NewReader(again)); !errors.Is(err, store.ErrExists) {
					t.Errorf("a second object of %s: %v, want that it exists", key, err)
				}
			}

			if got := read(t, s, key, store.Range{}); !bytes.Equal(got, data) {
				t.Errorf("the object of %s was replaced", key)
			}
		}

		untouched(t, s, 2)
	})
}

// untouched checks that the store has so many objects, and nothing half written.
func untouched(t *testing.T, s store.Store, want int) {
	t.Helper()

	objects, err := s.List(t.Context(), "")
	if err != nil || len(objects) != want {
		t.Errorf("the store has %v (%v), want %d objects", objects, err, want)
	}

	if swept, err := s.Sweep(t.Context(), "", begunBefore(time.Now().Add(time.Hour))); err != nil || swept != 0 {
		t.Errorf("%d uploads were left (%v)", swept, err)
	}
}

// begunBefore means everything of that age.
func begunBefore(limit time.Time) func(string, time.Time) bool {
	return func(_ string, begun time.Time) bool { return begun.Before(limit) }
}

func TestStore_keepsNothingOfABodyThatFails(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store.Store) {
		broken := errors.New("the member went away")

		for _, size := range []int{0, 1, 8 * mib, 9 * mib, 30 * mib} {
			_, err := s.Put(t.Context(), "prod/broken", io.MultiReader(bytes.NewReader(content(size)), iotest.ErrReader(broken)))
			if !errors.Is(err, broken) {
				t.Errorf("after %d bytes: %v, want the body's error", size, err)
			}
		}

		untouched(t, s, 0)
	})
}

func TestStore_keepsNothingOfACanceledCall(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store.Store) {
		for _, size := range []int{0, 9 * mib, 30 * mib} {
			ctx, cancel := context.WithCancel(t.Context())
			rest := reader(func([]byte) (int, error) { cancel(); return 0, nil })

			if _, err := s.Put(ctx, "prod/canceled", io.MultiReader(bytes.NewReader(content(size)), rest)); !errors.Is(err,
				context.Canceled) {
				t.Errorf("after %d bytes: %v, want that it was canceled", size, err)
			}
		}

		untouched(t, s, 0)
	})
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

func TestStore_saysWhatIsMissing(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store.Store) {
		if _, err := s.Head(t.Context(), "prod/none"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("head: %v", err)
		}

		if _, err := s.Open(t.Context(), "prod/none", store.Range{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("open: %v", err)
		}

		if err := s.Delete(t.Context(), "prod/none"); err != nil {
			t.Errorf("delete: %v", err)
		}

		untouched(t, s, 0)
	})
}

func TestStore_listsAndDeletes(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store.Store) {
		keys := []string{"x/prod/etcd-1", "x/prod/etcd-2", "x/prod/other", "x/prod2/etcd-1", "y"}

		var group sync.WaitGroup
		for _, key := range keys {
			group.Go(func() {
				if _, err := s.Put(t.Context(), key, bytes.NewReader([]byte(key))); err != nil {
					t.Error(err)
				}
			})
		}

		group.Wait()

		for prefix, want := range map[string][]string{"": keys, "x/prod/etcd-": keys[:2], "x/prod/": keys[:3],
			"x/prod": keys[:4], "z": nil} {
			objects, err := s.List(t.Context(), prefix)
			if err != nil || len(objects) != len(want) {
				t.Fatalf("below %q are %v (%v), want %v", prefix, objects, err, want)
			}

			for i, o := range objects {
				if o.Key != want[i] || o.Size != int64(len(want[i])) || o.Modified.IsZero() {
					t.Errorf("object %d below %q is %+v, want %s", i, prefix, o, want[i])
				}
			}
		}

		if err := s.Delete(t.Context(), "x/prod/etcd-1"); err != nil {
			t.Error(err)
		}

		untouched(t, s, len(keys)-1)
	})
}

// A disk has a folder that only root reads, and others keep their folders beside ours.
func TestStoreList_skipsFoldersOfOthers(t *testing.T) {
	t.Parallel()

	if os.Getuid() == 0 {
		t.Skip("root reads every folder")
	}

	s := file.Store{Path: t.TempDir()}

	for _, key := range []string{"x/prod/etcd-1", "x/prod/others/etcd-2", "x/other/etcd-1", "lost+found/etcd-1"} {
		if _, err := s.Put(t.Context(), key, strings.NewReader(key)); err != nil {
			t.Fatal(err)
		}
	}

	for _, folder := range []string{"lost+found", "x/other", "x/prod/others"} {
		path := filepath.Join(s.Path, folder)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
	}

	if objects, err := s.List(t.Context(), "x/prod/etcd-"); err != nil || len(objects) != 1 {
		t.Errorf("listed %v (%v)", objects, err)
	}

	if swept, err := s.Sweep(t.Context(), "x/prod/etcd-", begunBefore(time.Now().Add(time.Hour))); err != nil ||
		swept != 0 {
		t.Errorf("%d were swept (%v)", swept, err)
	}

	// A read error of the folder itself is reported.
	if objects, err := s.List(t.Context(), "x/prod/"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("listed %v (%v), want that a folder cannot be read", objects, err)
	}

	if objects, err := s.List(t.Context(), "../x"); err == nil {
		t.Errorf("outside of the folder are %v", objects)
	}
}

// Objects written through a link must be found again, and so must leftovers.
func TestStoreList_ofALinkedFolder(t *testing.T) {
	t.Parallel()

	s := file.Store{Path: t.TempDir()}

	folder := t.TempDir()
	if err := os.Symlink(folder, filepath.Join(s.Path, "prod")); err != nil {
		t.Fatal(err)
	}

	if _, err := s.Put(t.Context(), "prod/etcd-1", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(folder, ".talosop-partial-etcd-2-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if objects, err := s.List(t.Context(), "prod/etcd-"); err != nil || len(objects) != 1 ||
		objects[0].Key != "prod/etcd-1" {
		t.Errorf("listed %v (%v)", objects, err)
	}

	if swept, err := s.Sweep(t.Context(), "prod/etcd-", begunBefore(time.Now().Add(time.Hour))); err != nil || swept != 1 {
		t.Errorf("%d were swept (%v)", swept, err)
	}

	left(t, folder, 1)
}
