package backup_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	bolt "go.etcd.io/bbolt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

	values := storedPods(16 * mib) // more than the window of the compression

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

// storedPods are bytes as Kubernetes stores pods, which are most of what a database of etcd has. No two are equal, and
// what is random in them is so here; zstd makes them five times smaller.
func storedPods(size int) []byte {
	var (
		stored []byte
		random = mathrand.NewChaCha8([32]byte{1})
		number = mathrand.New(random).IntN
		digits = func(n int) string {
			data := make([]byte, n/2)
			_, _ = random.Read(data) // never fails

			return hex.EncodeToString(data)
		}
	)

	for len(stored) < size {
		app := fmt.Sprintf("app-%d", number(200))
		at := metav1.NewTime(taken.Add(time.Duration(number(1e7)) * time.Second))
		fields := `{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:pod-template-hash":{}},` +
			`"f:ownerReferences":{".":{},"k:{\"uid\":\"` + digits(32) + `\"}":{}}},"f:spec":{"f:containers":{` +
			`"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{}}}}}`

		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: app + "-" + digits(10), Namespace: fmt.Sprintf("team-%d", number(30)), UID: types.UID(digits(32)),
				CreationTimestamp: at,
				Labels:            map[string]string{"app.kubernetes.io/name": app, "pod-template-hash": digits(10)},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: types.UID(digits(32))}},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update",
					APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("worker-%d", number(100)), ServiceAccountName: app,
				Containers: []corev1.Container{{Name: "web", Image: fmt.Sprintf("registry.example/%s:v1.%d", app, number(50))}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.%d.%d", number(255), number(255)), StartTime: &at,
				ContainerStatuses: []corev1.ContainerStatus{
					{Name: "web", ContainerID: "containerd://" + digits(64), ImageID: "sha256:" + digits(64)}},
			},
		}

		data, err := pod.Marshal()
		if err != nil {
			panic(err)
		}

		stored = append(append(stored, "k8s\x00\n\x09\n\x02v1\x12\x03Pod"...), data...)
	}

	return stored[:size]
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
// take/copy is the median of the ratios of the two speeds. It fails when taking or fetching needs more memory than
// allowed.
//
//	TALOSOP_BENCH_MIB=2048 go test -run '^$' -bench Snapshot -benchtime 5x ./internal/backup
func BenchmarkSnapshot(b *testing.B) {
	size := 256
	if given := os.Getenv("TALOSOP_BENCH_MIB"); given != "" {
		parsed, err := strconv.Atoi(given)
		if err != nil {
			b.Fatal(err)
		}

		size = parsed
	}

	// Whatever GOGC says.
	defer debug.SetGCPercent(debug.SetGCPercent(100))

	path := benchSnapshot(b, size)
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
			sealed := sealings(b)[test.sealing]

			var (
				memory                  uint64
				taking, copying, ratios []float64
			)

			for b.Loop() {
				record, took, held := takenFrom(b, a, sealed.Sealing, path)
				memory = max(memory, held)

				if err := a.Remove(b.Context(), record.Key); err != nil {
					b.Fatal(err)
				}

				plainly := copied(b, sdk, a.Store, path)

				taking, copying = append(taking, float64(size)/took.Seconds()), append(copying, float64(size)/plainly.Seconds())
				ratios = append(ratios, plainly.Seconds()/took.Seconds())
			}

			record, _, _ := takenFrom(b, a, sealed.Sealing, path)
			fetching := fetched(b, a, record.Key, sealed.keys)

			b.ReportMetric(median(taking), "take-MiB/s")
			b.ReportMetric(median(copying), "copy-MiB/s")
			b.ReportMetric(median(ratios), "take/copy")
			b.ReportMetric(float64(memory)/mib, "take-MiB-more")
			b.ReportMetric(float64(fetching)/mib, "fetch-MiB-more")

			if max(memory, fetching) > memoryLimit {
				b.Errorf("%d MiB more were resident, want at most %d", max(memory, fetching)/mib, memoryLimit/mib)
			}
		})
	}
}

func median(of []float64) float64 {
	slices.Sort(of)

	return of[len(of)/2]
}

// takenFrom takes a snapshot of a file, and returns how long that took and how much more memory was resident meanwhile.
func takenFrom(
	b *testing.B, a backup.Archive, sealing backup.Sealing, path string,
) (record backup.Record, took time.Duration, memory uint64) {
	b.Helper()

	var err error

	memory = more(func() {
		start := time.Now()
		record, err = a.Take(b.Context(), backup.Request{At: taken, Sealing: sealing, Source: fromFile(path)})
		took = time.Since(start)
	})

	if err != nil {
		b.Fatal(err)
	}

	return record, took, memory
}

// fetched fetches a snapshot and removes it, and returns how much more memory was resident meanwhile.
func fetched(b *testing.B, a backup.Archive, key string, keys backup.Keys) (memory uint64) {
	b.Helper()

	var err error

	memory = more(func() {
		var snapshot *backup.Snapshot
		if snapshot, err = a.Fetch(b.Context(), key, keys); err == nil {
			err = snapshot.Close()
		}
	})

	if err := errors.Join(err, a.Remove(b.Context(), key)); err != nil {
		b.Fatal(err)
	}

	return memory
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
