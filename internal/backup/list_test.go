package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// sealedOff is a store that does not give one object away.
type sealedOff struct {
	store.Store

	key string
}

var errDenied = errors.New("access denied")

func (s sealedOff) Open(ctx context.Context, key string, part store.Range) (io.ReadCloser, error) {
	if key == s.key {
		return nil, errDenied
	}

	return s.Store.Open(ctx, key, part)
}

// A record that is too large, or that may not be read, says nothing of the other snapshots.
func TestList_goesOnAfterABadRecord(t *testing.T) {
	t.Parallel()

	a, s := archive(t)

	var keys []string

	for i := range 3 {
		record, err := a.Take(t.Context(),
			backup.Request{At: taken.Add(time.Duration(i) * time.Hour), Source: inPieces(whole(t), 5000)})
		if err != nil {
			t.Fatal(err)
		}

		keys = append(keys, record.Key)
	}

	if err := os.WriteFile(filepath.Join(s.Path, filepath.FromSlash(keys[0]+".json")), bytes.Repeat([]byte("x"), 1<<20+1),
		0o600); err != nil {
		t.Fatal(err)
	}

	a.Store = sealedOff{s, keys[1] + ".json"}

	entries, err := a.List(t.Context())
	if err != nil || len(entries) != 3 || entries[2].Record == nil || entries[2].RecordErr != nil {
		t.Fatalf("listed %+v (%v)", entries, err)
	}

	for i, want := range []error{backup.ErrRecord, errDenied} {
		if entries[i].Record != nil || !errors.Is(entries[i].RecordErr, want) ||
			errors.Is(entries[i].RecordErr, backup.ErrRecord) != (i == 0) {
			t.Errorf("%s: %+v, %v, want %v", entries[i].Key, entries[i].Record, entries[i].RecordErr, want)
		}
	}

	// A canceled call reports no doubts.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if entries, err := a.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled listing has %+v (%v)", entries, err)
	}
}

// together is a store that returns no object before so many are requested.
type together struct {
	store.Store

	asked  *atomic.Int32
	enough chan struct{}
}

func (s together) Open(ctx context.Context, key string, part store.Range) (io.ReadCloser, error) {
	if s.asked.Add(1) == 16 {
		close(s.enough)
	}

	select {
	case <-s.enough:
		return s.Store.Open(ctx, key, part)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestList_readsRecordsSideBySide(t *testing.T) {
	t.Parallel()

	a, s := archive(t)

	for i := range 20 {
		if _, err := a.Take(t.Context(),
			backup.Request{At: taken.Add(time.Duration(i) * time.Hour), Source: inPieces(whole(t), 5000)}); err != nil {
			t.Fatal(err)
		}
	}

	a.Store = together{s, new(atomic.Int32), make(chan struct{})}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	entries, err := a.List(ctx)
	if err != nil || len(entries) != 20 {
		t.Fatalf("listed %d (%v)", len(entries), err)
	}

	for i, e := range entries {
		if at := taken.Add(time.Duration(i) * time.Hour); !e.Name.At.Equal(at) || e.Record == nil || e.Record.Key != e.Key {
			t.Errorf("entry %d is %s with %+v, want that of %s", i, e.Key, e.Record, at)
		}
	}
}
