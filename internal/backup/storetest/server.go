// Package storetest runs a real S3 server for tests, with TLS, behind a proxy that can fail
// its requests. The server is versitygw, of the programs that tools/testbed builds.
package storetest

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

	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The credentials and the bucket of every server.
const (
	AccessKey = "backups"
	SecretKey = "secret-of-the-bucket"
	Bucket    = "etcd"
)

// Fault is the proxy's fault for a request.
type Fault int

// The faults.
const (
	Passed      Fault = iota
	Unavailable       // answered with 503 and not passed on
	Refused           // answered with 507 as a full disk would be
	Cut               // the connection ends before the request is passed on
	Lost              // the request is passed on, and the connection ends instead of the answer
	Stalled           // the request is read and never answered
	Halved            // half of the answer's body comes
	Paused            // half of the answer's body comes, and the connection stays
	Vanished          // answered as AWS answers for an upload that has ended, and not passed on
)

// Server is a real S3 server with TLS, reached through a proxy that can fail.
type Server struct {
	// CA of the server and of the proxy, in PEM.
	CA string
	// Direct is the URL of the server itself.
	Direct string
	Proxy  *httptest.Server
	// Data is the folder of the bucket's objects.
	Data string

	roots    *x509.CertPool
	mu       sync.Mutex
	requests []*http.Request
	fault    func(*http.Request) Fault
	answered func()
}

// New starts a server with an empty bucket, until the test ends.
func New(t testing.TB) *Server {
	t.Helper()

	program := clitest.Asset(t, "versitygw")
	folder := t.TempDir()

	b := &Server{Data: filepath.Join(folder, "data", Bucket)}
	for _, path := range []string{b.Data, filepath.Join(folder, "iam")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}

	b.Proxy = b.AnotherProxy(t)
	b.roots = x509.NewCertPool()
	b.roots.AddCert(b.Proxy.Certificate())
	b.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Proxy.Certificate().Raw}))
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")

	private, err := x509.MarshalPKCS8PrivateKey(b.Proxy.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	for path, content := range map[string][]byte{cert: []byte(b.CA),
		key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	address := FreeAddress(t)
	b.Direct = "https://" + address

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--port", address, "--cert", cert, "--key",
		key, "--health", "/healthz",
		"--iam-dir", filepath.Join(folder, "iam"), "--quiet", "posix", filepath.Join(folder, "data"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)

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

// AnotherProxy starts a proxy with the same faults and the same certificate, until it is closed or the test ends. Its
// Close returns when every request that reached it has been dealt with.
func (b *Server) AnotherProxy(t testing.TB) *httptest.Server {
	t.Helper()

	proxy := httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that are meant to fail
	proxy.StartTLS()
	t.Cleanup(proxy.Close)

	return proxy
}

// ports that were handed out by this process.
var ports atomic.Uint32

// FreeAddress is an address without a listener that the system assigns to no connection: the connections of all
// tests take ports from 32768 on (Linux, ip_local_port_range).
func FreeAddress(t testing.TB) string {
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

	t.Fatal("no free port")

	return ""
}

// await returns when the server answers.
func (b *Server) await(t testing.TB) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	client := b.Proxy.Client()

	if err := wait.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.Direct+"/healthz", nil)
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
func (b *Server) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.requests = append(b.requests, r.Clone(context.WithoutCancel(r.Context())))
	f := Passed

	if b.fault != nil {
		f = b.fault(r)
	}

	answered := b.answered
	b.mu.Unlock()

	forward := b.forward()

	// A client that goes away leaves the server at work on what it was sent: the request ends with the server's answer,
	// so that nothing is stored after the proxy is closed. The context can be canceled, or ReverseProxy watches the
	// connection itself.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()

	passed := r.WithContext(ctx)

	switch f {
	case Passed:
		forward.ServeHTTP(w, passed)
	case Unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
	case Refused:
		// An answer before the end of the body would be a cut connection to the client, which it asks again after.
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusInsufficientStorage)
	case Vanished:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchUpload</Code><Message>The specified upload does not "+
			"exist.</Message></Error>")
	case Cut:
		panic(http.ErrAbortHandler)
	case Lost:
		forward.ServeHTTP(httptest.NewRecorder(), passed)

		if answered != nil {
			answered()
		}

		panic(http.ErrAbortHandler)
	case Stalled:
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case Halved:
		half(w, r, forward)
		panic(http.ErrAbortHandler)
	case Paused:
		half(w, r, forward)
		<-r.Context().Done()
	}
}

// forward passes requests on to the server itself.
func (b *Server) forward() http.Handler {
	target, err := url.Parse(b.Direct)
	if err != nil {
		panic(err)
	}

	return &httputil.ReverseProxy{
		// The host is signed, so the server must see that of the client.
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: b.roots},
			DisableCompression: true, DisableKeepAlives: true,
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// half gives half of an answer's body.
func half(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	answer := httptest.NewRecorder()
	forward.ServeHTTP(answer, r)

	for name, values := range answer.Header() {
		w.Header()[name] = values
	}

	w.WriteHeader(answer.Code)
	_, _ = io.CopyN(w, answer.Body, int64(answer.Body.Len()/2))
	_ = http.NewResponseController(w).Flush()
}

// Fail makes the proxy fail requests from now on; nil ends that.
func (b *Server) Fail(f func(*http.Request) Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.fault = f
}

// Answered calls a function for each answer that gets lost from now on.
func (b *Server) Answered(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.answered = f
}

// Seen are the requests of a kind until now.
func (b *Server) Seen(kind func(*http.Request) bool) []*http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(b.requests), func(r *http.Request) bool { return !kind(r) })
}

// Config reaches the bucket through the proxy.
func (b *Server) Config() s3.Config {
	return s3.Config{
		Bucket: Bucket, Region: "us-east-1", Endpoint: b.Proxy.URL, PathStyle: true, CA: b.CA,
		Credentials: s3.Credentials{AccessKeyID: AccessKey, SecretAccessKey: SecretKey},
	}
}

// Orphan begins an upload of a key and never ends it, as a killed run does.
func (b *Server) Orphan(t testing.TB, key string) {
	t.Helper()

	c := b.Config()

	client := awss3.New(awss3.Options{
		BaseEndpoint: &b.Direct, Region: c.Region, UsePathStyle: true, HTTPClient: b.Proxy.Client(),
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})

	if _, err := client.CreateMultipartUpload(t.Context(),
		&awss3.CreateMultipartUploadInput{Bucket: &c.Bucket, Key: &key}); err != nil {
		t.Fatal(err)
	}
}

// Kinds of requests, as the AWS SDK makes them.

// IsCreate is the begin of a multipart upload.
func IsCreate(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploads")
}

// IsComplete is the end of a multipart upload.
func IsComplete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

// IsPart is a part of a multipart upload.
func IsPart(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Has("partNumber")
}

// IsPut is an upload in one request.
func IsPut(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.RawQuery == "x-id=PutObject"
}

// IsHead reports whether a request is for an object without its content.
func IsHead(r *http.Request) bool { return r.Method == http.MethodHead }

// IsGet is a download.
func IsGet(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("x-id") == "GetObject"
}

// First makes the first n requests of a kind fail.
func First(n int, kind func(*http.Request) bool, f Fault) func(*http.Request) Fault {
	return func(r *http.Request) Fault {
		if n > 0 && kind(r) {
			n--
			return f
		}

		return Passed
	}
}
