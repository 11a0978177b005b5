package backup_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
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

// benchSize in MiB of the database that BenchmarkTake stores: large beside all buffers
// together.
const benchSize = 256

// blackhole is a store that reads and forgets.
type blackhole struct{ store.Store }

func (blackhole) Put(_ context.Context, key string, body io.Reader) (store.Object, error) {
	size, err := io.Copy(io.Discard, body)

	return store.Object{Key: key, Size: size}, err
}

// database is a file of benchSize and what bbolt adds, as etcd makes them.
func database(b *testing.B) string {
	b.Helper()

	path := filepath.Join(b.TempDir(), "db")

	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		b.Fatal(err)
	}

	for i := range benchSize {
		if err := db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}

			for j := range 64 {
				if err := bucket.Put(revision(i*64+j+2), content(16<<10)); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}

	// A snapshot has no pages beyond the last one in use, unlike the file.
	if err := errors.Join(db.View(func(tx *bolt.Tx) error { return tx.CopyFile(path+".snapshot", 0o600) }), db.Close()); err != nil {
		b.Fatal(err)
	}

	return path + ".snapshot"
}

// peak follows how much memory the process has in use, until the result is called.
func peak() func() uint64 {
	var most atomic.Uint64

	done, ended := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(ended)

		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}

		for tick := time.NewTicker(5 * time.Millisecond); ; {
			metrics.Read(sample)
			most.Store(max(most.Load(), sample[0].Value.Uint64()-sample[1].Value.Uint64()))

			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()

	return func() uint64 {
		close(done)
		<-ended

		return most.Load()
	}
}

// fromFile streams a database with its sum.
func fromFile(path string) backup.Source {
	return func(_ context.Context, to io.Writer) (err error) {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()

		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(to, sum), file); err != nil {
			return err
		}

		_, err = to.Write(sum.Sum(nil))

		return err
	}
}

// BenchmarkTake reports speed, and the memory of the process beyond what it had before, in
// MiB.
func BenchmarkTake(b *testing.B) {
	path := database(b)

	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}

	for name, sealing := range map[string]backup.Sealing{
		"plain": {}, "zstd": {Compress: true}, "zstd and age": {Compress: true, Recipients: []string{"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"}},
	} {
		b.Run(name, func(b *testing.B) {
			a := backup.Archive{Store: blackhole{}, Cluster: "prod", Mark: ours, Scratch: b.TempDir()}

			b.SetBytes(info.Size())
			runtime.GC()

			before := peak()()
			after := peak()

			for b.Loop() {
				if _, err := a.Take(b.Context(), backup.Request{At: taken, Sealing: sealing, Source: fromFile(path)}); err != nil {
					b.Fatal(err)
				}
			}

			b.ReportMetric(float64(int64(after())-int64(before))/mib, "MiB-more")
		})
	}
}

// BenchmarkS3 compares a snapshot with the AWS SDK's own copy of the same file to the same server, and reports memory as BenchmarkTake does.
func BenchmarkS3(b *testing.B) {
	path := database(b)

	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}

	server := newBucketServer(b)
	c := server.config()
	c.Endpoint = server.direct
	a := backup.Archive{Store: opened(b, c), Cluster: "prod", Mark: ours, Scratch: b.TempDir()}
	sdk := transfermanager.New(awss3.New(awss3.Options{
		BaseEndpoint: &server.direct, Region: c.Region, UsePathStyle: true, HTTPClient: server.proxy.Client(),
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	}))

	for name, store := range map[string]func(ctx context.Context) error{
		"copy": func(ctx context.Context) error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()

			_, err = sdk.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: &c.Bucket, Key: aws.String(rand.Text()), Body: file})

			return err
		},
		"take": func(ctx context.Context) error {
			_, err := a.Take(ctx, backup.Request{At: taken, Source: fromFile(path)})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(info.Size())
			runtime.GC()

			before := peak()()
			after := peak()

			for b.Loop() {
				if err := store(b.Context()); err != nil {
					b.Fatal(err)
				}
			}

			b.ReportMetric(float64(int64(after())-int64(before))/mib, "MiB-more")
		})
	}
}
