package backup_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// forgetful answers without the sums of objects, as servers do that made none.
type forgetful struct{ http.ResponseWriter }

func (f forgetful) WriteHeader(code int) {
	for name := range f.Header() {
		if strings.HasPrefix(name, "X-Amz-Checksum-") {
			f.Header().Del(name)
		}
	}

	f.ResponseWriter.WriteHeader(code)
}

func TestS3Put_readsBackWhereTheServerHasNoSums(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isHead(r) {
			w = forgetful{w}
		}

		b.proxy.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	c := b.config()
	c.Endpoint = server.URL
	s := opened(t, c)

	for name, size := range map[string]int{"single": 100, "parts": 9 * mib} {
		if object, err := s.Put(t.Context(), "prod/"+name, bytes.NewReader(content(size))); err != nil ||
			object.Checksum != "" {
			t.Errorf("%s: stored %+v (%v), want no checksum", name, object, err)
		}

		// The disk of the server changes a byte before it is asked.
		b.failing(func(r *http.Request) fault {
			if isHead(r) {
				if err := os.WriteFile(filepath.Join(b.data, "prod", name+"2"), flipped(content(size), size/2), 0o600); err != nil {
					t.Error(err)
				}
			}

			return passed
		})

		if _, err := s.Put(t.Context(), "prod/"+name+"2", bytes.NewReader(content(size))); !errors.Is(err, store.ErrDiffers) {
			t.Errorf("%s: %v, want that it differs", name, err)
		}

		b.failing(nil)
	}

	untouched(t, s, 2)
}

func TestS3Put_asksForEncryptionAndLock(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	c := b.config()
	c.Encryption = s3.Encryption{Algorithm: "aws:kms", KMSKey: "key-1"}
	c.Lock = s3.Lock{Mode: "GOVERNANCE", Until: time.Now().Add(time.Hour)}

	// This server has no object lock and may refuse; only the request counts.
	for _, size := range []int{100, 9 * mib} {
		_, _ = opened(t, c).Put(t.Context(), "prod/x", bytes.NewReader(content(size)))
	}

	for name, kind := range map[string]func(*http.Request) bool{"put": isPut, "create": isCreate} {
		requests := b.seen(kind)
		if len(requests) == 0 {
			t.Fatalf("no request to %s", name)
		}

		for header, want := range map[string]string{
			"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key-1",
			"X-Amz-Object-Lock-Mode":              "GOVERNANCE",
			"X-Amz-Object-Lock-Retain-Until-Date": c.Lock.Until.UTC().Format("2006-01-02T15:04:05"),
		} {
			if got := requests[0].Header.Get(header); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

// Each body has a sum in the head of its request, which is signed. The body itself is, where
// nothing else protects it.
func TestS3Put_sendsSumsWithBodies(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	plain := httptest.NewServer(b.proxy.Config.Handler)
	t.Cleanup(plain.Close)

	for endpoint, signed := range map[string]bool{b.proxy.URL: false, plain.URL: true} {
		c := b.config()
		c.Endpoint = endpoint
		s := opened(t, c)
		before := len(b.seen(carriesBody))

		for _, size := range []int{0, 100, 9 * mib} {
			key := fmt.Sprintf("%t/%d", signed, size)
			if _, err := s.Put(t.Context(), key, bytes.NewReader(content(size))); err != nil {
				t.Fatal(key, err)
			}

			if got := read(t, s, key, store.Range{}); !bytes.Equal(got, content(size)) {
				t.Errorf("%s: other bytes came back", key)
			}
		}

		requests := b.seen(carriesBody)[before:]
		if len(requests) != 4 {
			t.Errorf("%d requests had bodies, want two objects and two parts", len(requests))
		}

		for _, r := range requests {
			if sum := r.Header.Get("X-Amz-Checksum-Crc32c"); sum == "" || r.Header.Get("Content-Encoding") != "" ||
				r.Header.Get("X-Amz-Trailer") != "" {
				t.Errorf("%s: sent with %v", r.URL, r.Header)
			}

			if got := r.Header.Get("X-Amz-Content-Sha256") != "UNSIGNED-PAYLOAD"; got != signed {
				t.Errorf("%s: the body is signed: %t, want %t", r.URL, got, signed)
			}
		}
	}
}

func carriesBody(r *http.Request) bool { return isPut(r) || isPart(r) }

func TestS3_refusesIncompleteConfigurations(t *testing.T) {
	t.Parallel()

	b := newBucketServer(t)
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	other.StartTLS()
	t.Cleanup(other.Close)

	for name, change := range map[string]func(*s3.Config){
		"wrong secret":   func(c *s3.Config) { c.Credentials.SecretAccessKey = "other" },
		"unknown key":    func(c *s3.Config) { c.Credentials.AccessKeyID = "other" },
		"missing bucket": func(c *s3.Config) { c.Bucket = "missing" },
		"unknown CA":     func(c *s3.Config) { c.CA = "" },
	} {
		c := b.config()
		change(&c)

		_, err := opened(t, c).Put(t.Context(), "prod/x", strings.NewReader("x"))
		if err == nil || strings.Contains(err.Error(), secretKey) {
			t.Errorf("%s: %v", name, err)
		}
	}

	for name, change := range map[string]func(*s3.Config){
		"no bucket": func(c *s3.Config) { c.Bucket = "" }, "no CA": func(c *s3.Config) { c.CA = "x" },
		"half a lock": func(c *s3.Config) { c.Lock.Mode = "COMPLIANCE" },
	} {
		c := b.config()
		change(&c)

		if _, err := s3.New(t.Context(), c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}

	untouched(t, opened(t, b.config()), 0)

	c := b.config()
	c.CA, c.InsecureSkipTLSVerify = "", true
	untouched(t, opened(t, c), 0)
}

// tokenService hands out the keys of the bucket for a role.
func tokenService(t *testing.T, asked *sync.Map) *httptest.Server {
	t.Helper()

	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}

		asked.Store(r.Form.Get("RoleArn"), r.Form.Get("ExternalId"))
		_, _ = io.WriteString(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>`+accessKey+
			`</AccessKeyId><SecretAccessKey>`+secretKey+
			`</SecretAccessKey><SessionToken>token</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>`+
			`</Credentials></AssumeRoleResult></AssumeRoleResponse>`)
	}))
	t.Cleanup(service.Close)

	return service
}

func TestS3_credentials(t *testing.T) {
	b := newBucketServer(t)

	shared := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(shared,
		[]byte("[backups]\naws_access_key_id = "+accessKey+"\naws_secret_access_key = "+secretKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", shared)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")

	var asked sync.Map

	service := tokenService(t, &asked)
	role := s3.Role{ARN: "arn:aws:iam::123456789012:role/backups", ExternalID: "prod", Endpoint: service.URL}

	for name, test := range map[string]struct {
		environment bool
		credentials s3.Credentials
		token       string
	}{
		"profile":       {credentials: s3.Credentials{Profile: "backups"}},
		"default chain": {environment: true},
		"role": {credentials: s3.Credentials{AccessKeyID: "other", SecretAccessKey: "other", Role: role},
			token: "token"},
		"session": {credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey,
			SessionToken: "mine"}, token: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.environment {
				t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
				t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
			}

			c := b.config()
			c.Credentials = test.credentials

			// This server knows no sessions; what it is asked with counts.
			if _, err := opened(t, c).Put(t.Context(), "prod/"+name,
				strings.NewReader(name)); (err != nil) != (test.token != "") {
				t.Error(err)
			}

			requests := b.seen(isPut)
			if got := requests[len(requests)-1].Header.Get("X-Amz-Security-Token"); got != test.token {
				t.Errorf("the session's token is %q, want %q", got, test.token)
			}
		})
	}

	if id, ok := asked.Load(role.ARN); !ok || id != "prod" {
		t.Errorf("the role was asked for with the external id %v", id)
	}
}
