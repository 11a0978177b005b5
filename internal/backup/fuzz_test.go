package backup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// For every content of a store, and every answer of a server: no panic, an end, and no content that is taken for
// the cluster's. `go test -fuzz=FuzzDatabase ./internal/backup` looks for more; findings stay in testdata/fuzz.

// inMemory is a store of these objects.
type inMemory struct {
	store.Store

	objects map[string][]byte
}

func (s inMemory) Open(_ context.Context, key string, _ store.Range) (io.ReadCloser, error) {
	data, ok := s.objects[key]
	if !ok {
		return nil, store.ErrNotFound
	}

	return io.NopCloser(bytes.NewReader(data)), nil
}

// largestFuzzed in bytes keeps one input from taking long.
const largestFuzzed = 1 << 20

// smallDatabase is one of etcd with pages of that size.
func smallDatabase(tb testing.TB, pageSize, keys int) []byte {
	tb.Helper()

	db, err := bolt.Open(filepath.Join(tb.TempDir(), "db"), 0o600, &bolt.Options{PageSize: pageSize, NoSync: true})
	if err != nil {
		tb.Fatal(err)
	}

	var data bytes.Buffer

	err = errors.Join(db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{"key", "lease", "meta"} {
			bucket, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}

			for i := range keys {
				if err := bucket.Put(revision(i+2), bytes.Repeat([]byte("v"), i*40)); err != nil {
					return err
				}
			}
		}

		return nil
	}), db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(&data)
		return err
	}), db.Close())
	if err != nil {
		tb.Fatal(err)
	}

	return data.Bytes()
}

// resummed corrects the sums of the two first pages, so that other errors are reached.
func resummed(data []byte) []byte {
	data = bytes.Clone(data[:len(data)/512*512])

	for _, at := range []int{0, int(binary.LittleEndian.Uint32(append(bytes.Clone(data), make([]byte, 32)...)[24:]))} {
		if at >= 0 && at+80 <= len(data) {
			sum := fnv.New64a()
			sum.Write(data[at+16 : at+72])
			binary.LittleEndian.PutUint64(data[at+72:], sum.Sum64())
		}
	}

	return data
}

// opens fetches an object that is proved, and checks that the opened content is the stored one.
func opens(t *testing.T, scratch string, data []byte, keys backup.Keys) {
	t.Helper()

	a := backup.Archive{Store: inMemory{objects: map[string][]byte{"x.db": data}}, Mark: ours, Scratch: scratch}
	keys.SHA256 = sumOf(data)

	snapshot, err := a.Fetch(t.Context(), "x.db", keys)
	if err != nil {
		return
	}

	read, err := io.Copy(io.Discard, snapshot.Reader())
	if err = errors.Join(err, snapshot.Close()); err != nil || read != snapshot.Size() {
		t.Errorf("%d bytes of %d (%v)", read, snapshot.Size(), err)
	}
}

func FuzzDatabase(f *testing.F) {
	for _, size := range []int{512, 1024, 4096} {
		f.Add(smallDatabase(f, size, 3))
		f.Add(smallDatabase(f, size, 40))
	}

	scratch := f.TempDir()

	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= largestFuzzed {
			opens(t, scratch, summed(resummed(data)), backup.Keys{})
		}
	})
}

func FuzzArchive(f *testing.F) {
	identity, err := age.ParseX25519Identity(fuzzIdentity)
	if err != nil {
		f.Fatal(err)
	}

	plain := summed(smallDatabase(f, 512, 3))

	coder, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}

	small := coder.EncodeAll(plain, nil)

	for _, data := range [][]byte{plain, small, []byte("-----BEGIN AGE ENCRYPTED FILE-----\n"), {0x28, 0xb5, 0x2f, 0xfd}} {
		var sealed bytes.Buffer

		w, err := age.Encrypt(&sealed, identity.Recipient())
		if err != nil {
			f.Fatal(err)
		}

		_, err = w.Write(data)
		if err := errors.Join(err, w.Close()); err != nil {
			f.Fatal(err)
		}

		f.Add(data)
		f.Add(sealed.Bytes())
	}

	scratch := f.TempDir()

	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= largestFuzzed {
			opens(t, scratch, data, backup.Keys{})
			opens(t, scratch, data, backup.Keys{Identities: []string{fuzzIdentity}})
		}
	})
}

// fuzzIdentity is of no use elsewhere.
const fuzzIdentity = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"

func FuzzRecord(f *testing.F) {
	key, genuine := genuineRecord(f)
	text, _, _ := strings.Cut(genuine, ",\n  \"sum\"")

	f.Add([]byte(genuine))
	f.Add([]byte(editRecord(genuine, "prod", "others")))
	f.Add([]byte(text))
	f.Add([]byte("{}"))
	f.Add([]byte{})

	f.Fuzz(func(t *testing.T, data []byte) {
		// Once as it is, and once with the matching sum, as any client can write it.
		for _, data := range []string{string(data), editRecord(string(data), "\x00", "")} {
			a := backup.Archive{Store: inMemory{objects: map[string][]byte{key + ".json": []byte(data)}}, Mark: ours,
				RecordKeys: recordKeys}

			record, err := a.Recorded(t.Context(), key)
			if authentic := err == nil && record.Authentic; authentic != (data == genuine) {
				t.Errorf("authentic: %t (%v), of %q", authentic, err, data)
			}
		}
	})
}

// genuineRecord is one that a key of the cluster wrote, and the key of its snapshot.
func genuineRecord(f *testing.F) (key, text string) {
	f.Helper()

	kept := &keeping{}
	a := backup.Archive{Store: kept, Cluster: "prod", Mark: ours, RecordKeys: recordKeys, Scratch: f.TempDir()}

	record, err := a.Take(f.Context(), backup.Request{At: taken, Source: inPieces(whole(f), 5000)})
	if err != nil {
		f.Fatal(err)
	}

	return record.Key, kept.last
}

// keeping is a store that keeps the object that it got last.
type keeping struct {
	store.Store

	last string
}

func (k *keeping) Put(_ context.Context, key string, body io.Reader) (store.Object, error) {
	data, err := io.ReadAll(body)
	k.last = string(data)

	return store.Object{Key: key, Size: int64(len(data))}, err
}

func FuzzListing(f *testing.F) {
	const page = `<ListBucketResult><IsTruncated>%t</IsTruncated><NextContinuationToken>x</NextContinuationToken>%s` +
		`</ListBucketResult>`

	f.Add(fmt.Appendf(nil, page, true, "<Contents><Key>x/y</Key><Size>1</Size></Contents>"))
	f.Add(fmt.Appendf(nil, page, false, "<Contents><Key>&#0;</Key><Size>-1</Size><LastModified>then</LastModified></Contents>"))
	f.Add([]byte("<Error><Code>SlowDown</Code></Error>"))
	f.Add([]byte(`<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "&a;&a;">]><ListBucketResult>&a;</ListBucketResult>`))
	f.Add([]byte{})

	var (
		answer atomic.Pointer[[]byte]
		asked  atomic.Int64
	)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The answer comes once: a server that repeats itself for ever has a separate test.
		if asked.Add(1) > 1 {
			_, _ = fmt.Fprintf(w, page, false, "")
			return
		}

		_, _ = w.Write(*answer.Load())
	}))
	f.Cleanup(server.Close)

	s, err := s3.New(f.Context(), s3.Config{Bucket: bucket, Endpoint: server.URL, PathStyle: true,
		Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}})
	if err != nil {
		f.Fatal(err)
	}

	a := backup.Archive{Store: s, Cluster: "prod", Mark: ours, RecordKeys: recordKeys}

	f.Fuzz(func(t *testing.T, data []byte) {
		answer.Store(&data)
		asked.Store(0)

		entries, err := a.List(t.Context())
		for _, e := range entries {
			if err == nil && e.Record != nil {
				t.Errorf("%s has a record that no run wrote", e.Key)
			}
		}
	})
}
