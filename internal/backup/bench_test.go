package backup_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	bolt "go.etcd.io/bbolt"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// memoryLimit is what taking or fetching a snapshot may have resident beyond idle, however
// large the database is.
const memoryLimit = 128 * mib

// benchSnapshot is a file of that many MiB as etcd makes them, with its sum.
func benchSnapshot(b *testing.B, size int) string {
	b.Helper()

	path := filepath.Join(b.TempDir(), "db")

	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		b.Fatal(err)
	}

	// Objects of Kubernetes have some KiB.
	values := content(16 * mib) // more than the window of the compression

	for i := range size {
		if err := db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}

			bucket.FillPercent = 1 // keys come in order

			for j := range 512 {
				if err := bucket.Put(revision(i*512+j+2), values[i%16*mib+j*1900:][:1900]); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}

	to, err := os.Create(path + ".snapshot")
	if err != nil {
		b.Fatal(err)
	}

	// A snapshot has no pages beyond the last one in use, unlike the file.
	sum := sha256.New()
	err = db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(io.MultiWriter(to, sum))
		return err
	})

	_, wrote := to.Write(sum.Sum(nil))
	if err := errors.Join(err, wrote, to.Sync(), to.Close(), db.Close(), os.Remove(path)); err != nil {
		b.Fatal(err)
	}

	return to.Name()
}

// resident is how many bytes of the process are in memory, or 0 where the system does not
// say so.
func resident() uint64 {
	var pages, inMemory uint64

	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}

	if _, err := fmt.Sscan(string(data), &pages, &inMemory); err != nil {
		return 0
	}

	return inMemory * uint64(os.Getpagesize())
}

// more is how much more memory f had resident at most than there was before it.
func more(f func()) uint64 {
	debug.FreeOSMemory()

	var (
		idle        = resident()
		most        atomic.Uint64
		done, ended = make(chan struct{}), make(chan struct{})
	)

	go func() {
		defer close(ended)

		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()

		for {
			most.Store(max(most.Load(), resident()))

			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()

	f()
	close(done)
	<-ended

	return max(most.Load(), idle) - idle
}

// fromFile streams a snapshot in the pieces that etcd sends (etcd 3.6, maintenance.go,
// snapshotSendBufferSize).
func fromFile(path string) backup.Source {
	return func(_ context.Context, to io.Writer) (err error) {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()

		_, err = bufio.NewReaderSize(file, 32<<10).WriteTo(struct{ io.Writer }{to})

		return err
	}
}

// BenchmarkSnapshot takes a snapshot and, after each, copies the same file to the same server with the AWS SDK alone:
// copy/take is the ratio of the two speeds. It fails when taking or fetching needs more memory than allowed.
//
//	TALOSOP_BENCH_MIB=2048 go test -run '^$' -bench Snapshot ./internal/backup
func BenchmarkSnapshot(b *testing.B) {
	size := 256
	if given := os.Getenv("TALOSOP_BENCH_MIB"); given != "" {
		parsed, err := strconv.Atoi(given)
		if err != nil {
			b.Fatal(err)
		}

		size = parsed
	}

	path := benchSnapshot(b, size)

	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}

	server := newBucketServer(b)
	c := server.config()
	c.Endpoint = server.direct
	a := backup.Archive{Store: opened(b, c), Cluster: "prod", Mark: ours, RecordKeys: recordKeys, Scratch: b.TempDir()}
	sdk := transfermanager.New(awss3.New(awss3.Options{
		BaseEndpoint: &server.direct, Region: c.Region, UsePathStyle: true, HTTPClient: server.proxy.Client(),
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	}))

	for _, test := range []struct {
		name    string
		sealing string
	}{{"plain", ".db"}, {"zstd", ".db.zst"}, {"zstd and age", ".db.zst.age"}} {
		b.Run(test.name, func(b *testing.B) {
			sealing := sealings(b)[test.sealing]
			b.SetBytes(info.Size())

			var (
				memory, fetching uint64
				taking, copying  time.Duration
			)

			for b.Loop() {
				var record backup.Record

				memory = max(memory, more(func() {
					start := time.Now()
					record, err = a.Take(b.Context(), backup.Request{At: taken, Sealing: sealing.Sealing, Source: fromFile(path)})
					taking += time.Since(start)
				}))

				if err != nil {
					b.Fatal(err)
				}

				fetching = max(fetching, more(func() {
					var snapshot *backup.Snapshot
					if snapshot, err = a.Fetch(b.Context(), record.Key, sealing.keys); err == nil {
						err = snapshot.Close()
					}
				}))

				if err := errors.Join(err, a.Remove(b.Context(), record.Key)); err != nil {
					b.Fatal(err)
				}

				copying += copied(b, sdk, a.Store, path)
			}

			b.ReportMetric(float64(info.Size())*float64(b.N)/mib/taking.Seconds(), "take-MiB/s")
			b.ReportMetric(float64(info.Size())*float64(b.N)/mib/copying.Seconds(), "copy-MiB/s")
			b.ReportMetric(copying.Seconds()/taking.Seconds(), "take/copy")
			b.ReportMetric(float64(memory)/mib, "take-MiB-more")
			b.ReportMetric(float64(fetching)/mib, "fetch-MiB-more")

			if max(memory, fetching) > memoryLimit {
				b.Errorf("%d MiB more were resident, want at most %d", max(memory, fetching)/mib, memoryLimit/mib)
			}
		})
	}
}

// copied is how long the SDK takes to store a file, which is removed again.
func copied(b *testing.B, sdk *transfermanager.Client, s store.Store, path string) time.Duration {
	b.Helper()

	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}

	key, start := rand.Text(), time.Now()
	_, err = sdk.UploadObject(b.Context(),
		&transfermanager.UploadObjectInput{Bucket: aws.String(bucket), Key: &key, Body: file})
	took := time.Since(start)

	if err := errors.Join(err, file.Close(), s.Delete(b.Context(), key)); err != nil {
		b.Fatal(err)
	}

	return took
}
