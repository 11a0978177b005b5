package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"filippo.io/age"

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

// die takes or fetches a snapshot, and waits at the given point to be killed.
func die(ctx context.Context) error {
	a := backup.Archive{Cluster: "prod", Mark: ours, RecordKeys: recordKeys, Scratch: os.Getenv(victimScratch)}

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
