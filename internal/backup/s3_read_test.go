package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

func TestS3Open_readsOnAfterACut(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	s := opened(t, b.config())

	if _, err := s.Put(t.Context(), "prod/x", bytes.NewReader(content(3*mib))); err != nil {
		t.Fatal(err)
	}

	b.failing(first(3, isGet, halved))

	if got := read(t, s, "prod/x", store.Range{}); !bytes.Equal(got, content(3*mib)) {
		t.Error("other bytes came back")
	}

	b.failing(first(2, isGet, halved))

	if got := read(t, s, "prod/x", store.Range{Offset: mib, Length: mib}); !bytes.Equal(got, content(3 * mib)[mib:2*mib]) {
		t.Error("other bytes of a part came back")
	}

	// Every answer ends half way, down to the last byte, half of which is nothing.
	b.failing(func(r *http.Request) fault {
		if isGet(r) {
			return halved
		}

		return passed
	})

	body, err := s.Open(t.Context(), "prod/x", store.Range{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err := io.Copy(io.Discard, body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reading that never ends: %v", err)
	}

	if err := body.Close(); err != nil {
		t.Error(err)
	}
}

// A silent connection is replaced by another one, and in the end given up.
func TestS3Open_readsOnAfterAStall(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	c := b.config()

	if _, err := opened(t, c).Put(t.Context(), "prod/x", bytes.NewReader(content(mib))); err != nil {
		t.Fatal(err)
	}

	b.failing(first(1, isGet, paused))

	c.Stall = time.Second
	s := opened(t, c)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	body, err := s.Open(ctx, "prod/x", store.Range{})
	if err != nil {
		t.Fatal(err)
	}

	got, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, content(mib)) {
		t.Errorf("%d of %d bytes came, or others (%v)", len(got), mib, err)
	}
}

// answering is a store of a server that answers each request so.
func answering(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) store.Store {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)

	return opened(t, s3.Config{
		Bucket: bucket, Endpoint: server.URL, PathStyle: true,
		Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
	})
}

// A server in trouble gives a byte and ends the connection. It is not hammered.
func TestS3Open_givesAFailingServerTime(t *testing.T) {
	t.Parallel()

	var (
		mu    sync.Mutex
		asked []time.Time
	)

	s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		asked = append(asked, time.Now())
		w.Header().Set("Content-Length", strconv.Itoa(1000-len(asked)))
		mu.Unlock()

		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()

		panic(http.ErrAbortHandler)
	})

	body, err := s.Open(t.Context(), "prod/x", store.Range{})
	if err != nil {
		t.Fatal(err)
	}

	if n, err := io.Copy(io.Discard, body); !errors.Is(err, io.ErrUnexpectedEOF) || n != 6 {
		t.Errorf("%d bytes came, %v", n, err)
	}

	pause := 200 * time.Millisecond
	for i := range len(asked) - 1 {
		if gap := asked[i+1].Sub(asked[i]); gap < pause {
			t.Errorf("it was asked again after %s, want %s", gap, pause)
		}

		pause *= 2
	}

	if len(asked) != 6 {
		t.Errorf("it was asked %d times, want 6", len(asked))
	}
}

// Bytes of two objects must not be joined.
func TestS3Open_doesNotReadOnInAnotherObject(t *testing.T) {
	t.Parallel()

	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-Match") != "" {
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code></Error>")

			return
		}

		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("half "))
		_ = http.NewResponseController(w).Flush()

		panic(http.ErrAbortHandler)
	})

	body, err := s.Open(t.Context(), "prod/x", store.Range{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err := io.Copy(io.Discard, body); !errors.Is(err, store.ErrDiffers) || errors.Is(err, store.ErrExists) {
		t.Errorf("error %v, want that it differs", err)
	}
}

// An answer without a length has no end that can be missed.
func TestS3Open_readsNothingOfUnknownLength(t *testing.T) {
	t.Parallel()

	s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half "))
		_ = http.NewResponseController(w).Flush()
	})

	if body, err := s.Open(t.Context(), "prod/x", store.Range{}); err == nil {
		data, err := io.ReadAll(body)
		t.Errorf("%q came (%v), want an error at once", data, err)
	}
}

// A listing is bounded, whatever a server answers.
func TestS3List_isBounded(t *testing.T) {
	t.Parallel()

	page := func(content string) string {
		return `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>` +
			content + `</ListBucketResult>`
	}

	object := `<Contents><Key>x/` + strings.Repeat("k", 60) + `</Key><Size>1</Size></Contents>`

	for what, content := range map[string]string{
		"endless":    page(strings.Repeat(object, 100)),
		"empty":      page(""),
		"huge pages": page(strings.Repeat("<!-- nothing -->", 2<<20)),
	} {
		var answers atomic.Int64

		s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			if answers.Add(1) > 1200 {
				w.WriteHeader(http.StatusNotImplemented)
				return
			}

			_, _ = io.WriteString(w, content)
		})

		objects, err := s.List(t.Context(), "x/")
		if !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%s: listed %d with %d requests (%v)", what, len(objects), answers.Load(), err)
		}
	}
}
