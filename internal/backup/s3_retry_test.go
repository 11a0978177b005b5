package backup_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// inFront is a server in front of the real one that may answer a request itself.
func inFront(t *testing.T, b *bucketServer, answer func(w http.ResponseWriter, r *http.Request) bool) s3.Config {
	t.Helper()

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			b.proxy.Config.Handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)

	c := b.config()
	c.Endpoint, c.CA, c.InsecureSkipTLSVerify = server.URL, "", true

	return c
}

// refuse answers with an error of S3; answers to HEAD have no body.
func refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	_, _ = io.Copy(io.Discard, r.Body)

	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)

	if r.Method != http.MethodHead {
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName       xml.Name `xml:"Error"`
			Code, Message string
		}{Code: code, Message: message})
	}
}

func isDelete(r *http.Request) bool { return r.Method == http.MethodDelete }

func isList(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Has("list-type")
}

// every is what a store can do with one object, which has its parts at the size.
func every(t *testing.T, s *s3.Store, size int) {
	t.Helper()

	object, err := s.Put(t.Context(), "prod/x", bytes.NewReader(content(size)))
	if err != nil || object.Size != int64(size) {
		t.Fatalf("stored %+v: %v", object, err)
	}

	if got := read(t, s, "prod/x", store.Range{}); !bytes.Equal(got, content(size)) {
		t.Error("other bytes came back")
	}

	untouched(t, s, 1)

	if err := s.Delete(t.Context(), "prod/x"); err != nil {
		t.Error(err)
	}
}

// Whatever the SDK repeats is repeated, and so are answers of 429.
func TestS3_repeatsWhatTheSDKRepeats(t *testing.T) {
	t.Parallel()

	faults := map[string]struct {
		status int
		code   string
	}{
		"RequestTimeout": {http.StatusBadRequest, "RequestTimeout"}, "Throttling": {http.StatusBadRequest, "Throttling"},
		"SlowDown":         {http.StatusServiceUnavailable, "SlowDown"},
		"InternalError":    {http.StatusInternalServerError, "InternalError"},
		"TooManyRequests":  {http.StatusTooManyRequests, "TooManyRequests"},
		"RequestThrottled": {http.StatusForbidden, "RequestThrottled"},
		"bad gateway":      {http.StatusBadGateway, ""},
	}

	for name, kind := range map[string]func(*http.Request) bool{"put": isPut, "create": isCreate, "part": isPart,
		"complete": isComplete, "get": isGet, "list": isList, "delete": isDelete} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := newBucketServer(t)

			for fate, fault := range faults {
				// One retryer is for all requests: each meets two faults, and listing meets all.
				if name != "list" && fate != "RequestTimeout" && fate != "TooManyRequests" {
					continue
				}

				var times atomic.Int32

				s := opened(t, inFront(t, b, func(w http.ResponseWriter, r *http.Request) bool {
					if !kind(r) || times.Add(1) > 1 {
						return false
					}

					refuse(w, r, fault.status, fault.code, "")

					return true
				}))

				size := 9 * mib
				if name == "put" {
					size = 100
				}

				every(t, s, size)

				if times.Load() < 2 {
					t.Errorf("%s: asked %d times", fate, times.Load())
				}
			}
		})
	}
}

// A completion may fail in the body of an answer of 200.
func TestS3_repeatsACompletionThatFailsWith200(t *testing.T) {
	t.Parallel()

	for _, code := range []string{"InternalError", "SlowDown", "ServiceUnavailable"} {
		var times atomic.Int32

		s := opened(t, inFront(t, newBucketServer(t), func(w http.ResponseWriter, r *http.Request) bool {
			if !isComplete(r) || times.Add(1) > 1 {
				return false
			}

			refuse(w, r, http.StatusOK, code, "")

			return true
		}))
		every(t, s, 9*mib)

		if times.Load() != 2 {
			t.Errorf("%s: completed %d times", code, times.Load())
		}
	}
}

// A server whose clock is another one is asked again with its time, whatever is asked first.
func TestS3_correctsASkewedClock(t *testing.T) {
	t.Parallel()

	for _, skew := range []time.Duration{-20 * time.Minute, 3 * time.Hour} {
		objects := map[string]string{"/etcd/prod/x": "content"}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := time.Now().Add(skew)
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))

			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil || now.Sub(signed).Abs() > 15*time.Minute {
				refuse(w, r, http.StatusForbidden, "RequestTimeTooSkewed",
					"The difference between the request time and the current time is too large.")

				return
			}

			switch {
			case isList(r):
				_, _ = io.WriteString(w, "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")
			case isDelete(r):
				w.WriteHeader(http.StatusNoContent)
			default:
				_, _ = io.WriteString(w, objects[r.URL.Path])
			}
		}))
		t.Cleanup(server.Close)

		for name, ask := range map[string]func(s *s3.Store) error{
			"head":   func(s *s3.Store) error { _, err := s.Head(t.Context(), "prod/x"); return err },
			"list":   func(s *s3.Store) error { _, err := s.List(t.Context(), "prod/"); return err },
			"delete": func(s *s3.Store) error { return s.Delete(t.Context(), "prod/x") },
			"open": func(s *s3.Store) error {
				body, err := s.Open(t.Context(), "prod/x", store.Range{})
				if err != nil {
					return err
				}

				return body.Close()
			},
		} {
			s := opened(t, s3.Config{Bucket: bucket, Endpoint: server.URL, PathStyle: true,
				Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}})
			if err := ask(s); err != nil {
				t.Errorf("%s with %s: %v", name, skew, err)
			}
		}
	}
}

// What no time mends is not repeated: a key that may not, to a HEAD without a code, too.
func TestS3_asksOnceWhatIsDenied(t *testing.T) {
	t.Parallel()

	var times atomic.Int32

	s := opened(t, inFront(t, newBucketServer(t), func(w http.ResponseWriter, r *http.Request) bool {
		times.Add(1)
		refuse(w, r, http.StatusForbidden, "AccessDenied", "no")

		return true
	}))

	if _, err := s.Head(t.Context(), "prod/x"); !errors.Is(err, store.ErrDenied) || times.Load() != 1 {
		t.Errorf("%v after %d requests", err, times.Load())
	}
}

// A server without checksum headers or conditional writes is used without them, and names them otherwise.
func TestS3_serversWithoutHeaders(t *testing.T) {
	t.Parallel()

	checksum := func(r *http.Request) string {
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Amz-Checksum-") || strings.Contains(name, "Sdk-Checksum") || name == "X-Amz-Trailer" {
				return name
			}
		}

		return ""
	}
	condition := func(r *http.Request) string {
		if r.Header.Get("If-None-Match") == "" {
			return ""
		}

		return "If-None-Match"
	}

	for name, test := range map[string]struct {
		refused func(*http.Request) string
		setting string
		without func(c *s3.Config)
	}{
		"checksums":          {checksum, s3.Checksums, func(c *s3.Config) { c.NoChecksums = true }},
		"conditional writes": {condition, s3.ConditionalWrites, func(c *s3.Config) { c.NoConditionalWrites = true }},
	} {
		for answer, fault := range map[string]struct {
			status  int
			code    string
			message string
		}{
			"not implemented": {http.StatusNotImplemented, "NotImplemented",
				"A header you provided implies functionality that is not implemented"},
			"named":   {http.StatusBadRequest, "InvalidArgument", "Unsupported header %s received for this API call."},
			"invalid": {http.StatusBadRequest, "InvalidRequest", "no"},
		} {
			t.Run(name+" "+answer, func(t *testing.T) {
				t.Parallel()

				b := newBucketServer(t)
				c := inFront(t, b, func(w http.ResponseWriter, r *http.Request) bool {
					header := test.refused(r)
					if header == "" {
						return false
					}

					message := fault.message
					if strings.Contains(message, "%s") {
						message = fmt.Sprintf(message, header)
					}

					refuse(w, r, fault.status, fault.code, message)

					return true
				})

				for _, size := range []int{100, 9 * mib} {
					checkHeader(t, c, size, test.setting, answer == "named")
				}

				test.without(&c)

				for _, size := range []int{0, 100, 9 * mib} {
					every(t, opened(t, c), size)
				}

				keepsSafe(t, b, c)
			})
		}
	}
}

// checkHeader stores an object with all headers, and looks for the one that the server refuses in the error.
func checkHeader(t *testing.T, c s3.Config, size int, setting string, alone bool) {
	t.Helper()

	_, err := opened(t, c).Put(t.Context(), "prod/x", bytes.NewReader(content(size)))

	var refused *s3.HeaderError
	if !errors.As(err, &refused) {
		t.Fatalf("%d bytes: %v", size, err)
	}

	found := false

	for _, h := range refused.Headers {
		found = found || h.Setting == setting

		if alone && h.Setting != setting || !strings.Contains(err.Error(), h.Name+" (set "+h.Setting+" = false") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}

	if !found {
		t.Errorf("%d bytes: no %s in %v", size, setting, err)
	}
}

// keepsSafe checks that nothing is replaced, and that what the disk changes is found.
func keepsSafe(t *testing.T, b *bucketServer, c s3.Config) {
	t.Helper()

	s := opened(t, c)

	for name, size := range map[string]int{"single": 100, "parts": 9 * mib} {
		if _, err := s.Put(t.Context(), "prod/"+name, bytes.NewReader(content(size))); err != nil {
			t.Fatal(err)
		}

		if _, err := s.Put(t.Context(), "prod/"+name, strings.NewReader("other")); !errors.Is(err, store.ErrExists) {
			t.Errorf("%s was replaced: %v", name, err)
		}

		if got := read(t, s, "prod/"+name, store.Range{}); !bytes.Equal(got, content(size)) {
			t.Errorf("%s: other bytes came back", name)
		}
	}

	if !c.NoChecksums {
		return
	}

	stored := false

	b.failing(func(r *http.Request) fault {
		if stored = stored || isPut(r); stored && isHead(r) {
			if err := os.WriteFile(filepath.Join(b.data, "prod", "flipped"), flipped(content(100), 50), 0o600); err != nil {
				t.Error(err)
			}
		}

		return passed
	})

	if _, err := s.Put(t.Context(), "prod/flipped", bytes.NewReader(content(100))); !errors.Is(err, store.ErrDiffers) {
		t.Errorf("changed on disk: %v", err)
	}

	b.failing(nil)
}

// The error of a bucket in another region names that region, for each request.
func TestS3_namesTheRegionOfABucket(t *testing.T) {
	t.Parallel()

	for name, answer := range map[string]struct {
		status       int
		code, header string
		want         string
	}{
		"redirect":         {http.StatusMovedPermanently, "PermanentRedirect", "eu-central-1", "eu-central-1"},
		"temporary":        {http.StatusTemporaryRedirect, "TemporaryRedirect", "eu-central-1", "eu-central-1"},
		"malformed header": {http.StatusBadRequest, "AuthorizationHeaderMalformed", "eu-central-1", "eu-central-1"},
		"same region":      {http.StatusBadRequest, "InvalidArgument", "us-east-1", ""},
		"no header":        {http.StatusMovedPermanently, "PermanentRedirect", "", ""},
		"denied":           {http.StatusForbidden, "AccessDenied", "eu-central-1", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer.header != "" {
				w.Header().Set("X-Amz-Bucket-Region", answer.header)
			}

			refuse(w, r, answer.status, answer.code, "")
		}))
		t.Cleanup(server.Close)

		s := opened(t, s3.Config{Bucket: bucket, Endpoint: server.URL, Region: "us-east-1", PathStyle: true,
			Credentials: s3.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}})

		_, head := s.Head(t.Context(), "prod/x")
		_, list := s.List(t.Context(), "prod/")
		_, open := s.Open(t.Context(), "prod/x", store.Range{})
		_, put := s.Put(t.Context(), "prod/x", strings.NewReader("x"))
		_, parts := s.Put(t.Context(), "prod/x", bytes.NewReader(content(9*mib)))

		for verb, err := range map[string]error{"head": head, "list": list, "open": open, "put": put, "parts": parts,
			"delete": s.Delete(t.Context(), "prod/x")} {
			var elsewhere *s3.RegionError
			if errors.As(err, &elsewhere) != (answer.want != "") || err == nil {
				t.Errorf("%s, %s: %v", name, verb, err)
				continue
			}

			if elsewhere != nil && (elsewhere.Region != answer.want || elsewhere.Bucket != bucket ||
				!strings.Contains(err.Error(), "bucket etcd is in region eu-central-1")) {
				t.Errorf("%s, %s: %v", name, verb, err)
			}
		}
	}
}

// A profile of the environment counts nothing where a key is given, and what it names stays wrong without one.
func TestS3_keyWithoutTheProfileOfTheEnvironment(t *testing.T) {
	b := newBucketServer(t)
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken")

	if err := os.WriteFile(broken, []byte("[profile half]\nrole_arn = x\nsource_profile = none\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	bundle := filepath.Join(folder, "ca.pem")
	if err := os.WriteFile(bundle, []byte(b.CA), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, environment := range map[string]map[string]string{
		"missing":        {"AWS_PROFILE": "missing"},
		"default":        {"AWS_DEFAULT_PROFILE": "missing"},
		"without a role": {"AWS_PROFILE": "half", "AWS_CONFIG_FILE": broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			t.Setenv("AWS_CONFIG_FILE", filepath.Join(folder, "none"))
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(folder, "none"))
			t.Setenv("AWS_REGION", "eu-north-1")

			for variable, value := range environment {
				t.Setenv(variable, value)
			}

			c := b.config()
			untouched(t, opened(t, c), 0)

			c.Region = ""
			if region := opened(t, c).Region(); region != "eu-north-1" {
				t.Errorf("the region is %s", region)
			}

			t.Setenv("AWS_CA_BUNDLE", bundle)

			c.Region, c.CA = "us-east-1", ""
			untouched(t, opened(t, c), 0)

			t.Setenv("AWS_CA_BUNDLE", filepath.Join(folder, "none"))

			if _, err := s3.New(t.Context(), c); err == nil {
				t.Error("a missing AWS_CA_BUNDLE is accepted")
			}

			t.Setenv("AWS_CA_BUNDLE", "")

			c.Credentials = s3.Credentials{}
			if _, err := s3.New(t.Context(), c); (err == nil) != (name == "default") {
				t.Errorf("without a key: %v", err)
			}

			c.Credentials = s3.Credentials{Profile: "missing"}
			if _, err := s3.New(t.Context(), c); err == nil {
				t.Error("a missing profile of the store's own is accepted")
			}
		})
	}
}
