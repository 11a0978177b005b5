package backup_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
)

const (
	accessKey = storetest.AccessKey
	secretKey = storetest.SecretKey
	bucket    = storetest.Bucket
)

type fault = storetest.Fault

const (
	passed      = storetest.Passed
	unavailable = storetest.Unavailable
	refused     = storetest.Refused
	cut         = storetest.Cut
	lost        = storetest.Lost
	stalled     = storetest.Stalled
	halved      = storetest.Halved
	paused      = storetest.Paused
	vanished    = storetest.Vanished
)

// bucketServer is a real S3 server with TLS, reached through a proxy that can fail.
type bucketServer struct {
	*storetest.Server

	direct string
	proxy  *httptest.Server
	data   string // the folder of the bucket's objects
}

// newBucketServer starts a server with an empty bucket.
func newBucketServer(t testing.TB) *bucketServer {
	t.Helper()

	s := storetest.New(t)

	return &bucketServer{Server: s, direct: s.Direct, proxy: s.Proxy, data: s.Data}
}

// failing makes the proxy fail requests from now on.
func (b *bucketServer) failing(f func(*http.Request) fault) { b.Fail(f) }

// seen are the requests of a kind until now.
func (b *bucketServer) seen(kind func(*http.Request) bool) []*http.Request { return b.Seen(kind) }

// config reaches the bucket through the proxy.
func (b *bucketServer) config() s3.Config { return b.Config() }

// opened is a store of a configuration.
func opened(t testing.TB, c s3.Config) *s3.Store {
	t.Helper()

	s, err := s3.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func freeAddress(t testing.TB) string { return storetest.FreeAddress(t) }

// Kinds of requests.
func isCreate(r *http.Request) bool   { return storetest.IsCreate(r) }
func isComplete(r *http.Request) bool { return storetest.IsComplete(r) }
func isPart(r *http.Request) bool     { return storetest.IsPart(r) }
func isPut(r *http.Request) bool      { return storetest.IsPut(r) }
func isHead(r *http.Request) bool     { return storetest.IsHead(r) }
func isGet(r *http.Request) bool      { return storetest.IsGet(r) }

// first makes the first n requests of a kind fail.
func first(n int, kind func(*http.Request) bool, f fault) func(*http.Request) fault {
	return storetest.First(n, kind, f)
}
