package backup_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	accessKey = "backups"
	secretKey = "secret-of-the-bucket"
	bucket    = "etcd"
)

// fault is what a proxy does to a request.
type fault int

const (
	passed      fault = iota
	unavailable       // answered with 503 and not passed on
	refused           // answered with 507 as a full disk would be
	cut               // the connection ends before the request is passed on
	lost              // the request is passed on, and the connection ends instead of the answer
	stalled           // the request is read and never answered
	halved            // half of the answer's body comes
)

// bucketServer is a real S3 server with TLS, reached through a proxy that can fail.
type bucketServer struct {
	ca     string
	direct string
	proxy  *httptest.Server
	data   string // the folder of the bucket's objects

	mu       sync.Mutex
	requests []*http.Request
	fault    func(*http.Request) fault
	answered func() // called for an answer that gets lost
}

// newBucketServer starts a server with an empty bucket.
func newBucketServer(t testing.TB) *bucketServer {
	t.Helper()

	program := clitest.Asset(t, "versitygw")
	folder := t.TempDir()

	b := &bucketServer{data: filepath.Join(folder, "data", bucket)}
	for _, path := range []string{b.data, filepath.Join(folder, "iam")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}

	b.proxy = httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	b.proxy.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that are meant to fail
	b.proxy.StartTLS()
	t.Cleanup(b.proxy.Close)

	b.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.proxy.Certificate().Raw}))
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")

	private, err := x509.MarshalPKCS8PrivateKey(b.proxy.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	for path, content := range map[string][]byte{cert: []byte(b.ca), key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	address := freeAddress(t)
	b.direct = "https://" + address

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--port", address, "--cert", cert, "--key", key, "--health", "/healthz",
		"--iam-dir", filepath.Join(folder, "iam"), "--quiet", "posix", filepath.Join(folder, "data"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	b.await(t)

	return b
}

// ports that were handed out by this process.
var ports atomic.Uint32

// freeAddress is one that nothing listens on and that the system gives to nobody: the
// connections of all tests take ports from 32768 on (Linux, ip_local_port_range).
func freeAddress(t testing.TB) string {
	t.Helper()

	for range 1000 {
		port := 20000 + (uint32(os.Getpid())*100+ports.Add(1))%12000

		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}

		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}

		return listener.Addr().String()
	}

	t.Fatal("no port is free")

	return ""
}

// await returns when the server answers.
func (b *bucketServer) await(t testing.TB) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	client := b.proxy.Client()

	if err := wait.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.direct+"/healthz", nil)
		if err != nil {
			return err
		}

		response, err := client.Do(request)
		if err != nil {
			return err
		}

		return response.Body.Close()
	}); err != nil {
		t.Fatal(err)
	}
}

// serve passes a request on, unless it is to fail.
func (b *bucketServer) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.requests = append(b.requests, r.Clone(context.WithoutCancel(r.Context())))
	f := passed

	if b.fault != nil {
		f = b.fault(r)
	}

	answered := b.answered
	b.mu.Unlock()

	target, err := url.Parse(b.direct)
	if err != nil {
		panic(err)
	}

	forward := &httputil.ReverseProxy{
		// The host is signed, so the server must see that of the client.
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: b.proxy.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
			DisableCompression: true, DisableKeepAlives: true,
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	switch f {
	case passed:
		forward.ServeHTTP(w, r)
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
	case refused:
		w.WriteHeader(http.StatusInsufficientStorage)
	case cut:
		panic(http.ErrAbortHandler)
	case lost:
		forward.ServeHTTP(httptest.NewRecorder(), r)

		if answered != nil {
			answered()
		}

		panic(http.ErrAbortHandler)
	case stalled:
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case halved:
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)

		for name, values := range answer.Header() {
			w.Header()[name] = values
		}

		w.WriteHeader(answer.Code)
		_, _ = io.CopyN(w, answer.Body, int64(answer.Body.Len()/2))
		_ = http.NewResponseController(w).Flush()

		panic(http.ErrAbortHandler)
	}
}

// failing makes the proxy fail requests from now on.
func (b *bucketServer) failing(f func(*http.Request) fault) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.fault = f
}

// seen are the requests of a kind until now.
func (b *bucketServer) seen(kind func(*http.Request) bool) []*http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(b.requests), func(r *http.Request) bool { return !kind(r) })
}

// config reaches the bucket through the proxy.
func (b *bucketServer) config() s3.Config {
	return s3.Config{
		Bucket: bucket, Region: "us-east-1", Endpoint: b.proxy.URL, PathStyle: true, CA: b.ca,
		Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
	}
}

// opened is a store of a configuration.
func opened(t testing.TB, c s3.Config) *s3.Store {
	t.Helper()

	s, err := s3.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// Kinds of requests.
func isCreate(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploads")
}
func isComplete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}
func isPart(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Has("partNumber")
}
func isPut(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.RawQuery == "x-id=PutObject"
}
func isHead(r *http.Request) bool { return r.Method == http.MethodHead }
func isGet(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("x-id") == "GetObject"
}

// first makes the first n requests of a kind fail.
func first(n int, kind func(*http.Request) bool, f fault) func(*http.Request) fault {
	return func(r *http.Request) fault {
		if n > 0 && kind(r) {
			n--
			return f
		}

		return passed
	}
}
