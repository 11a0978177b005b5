package probe_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
)

// recorder is a server that keeps the headers of its requests and redirects to what next names, empty for an answer.
type recorder struct {
	*httptest.Server

	mu   sync.Mutex
	seen []http.Header
}

func record(t *testing.T, next func(path string) string) *recorder {
	t.Helper()

	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.seen = append(r.seen, req.Header.Clone())
		r.mu.Unlock()

		if to := next(req.URL.Path); to != "" {
			http.Redirect(w, req, to, http.StatusFound)
		}
	}))
	t.Cleanup(r.Close)

	return r
}

// secretHeaders are the headers of each request that are not those of every request.
func (r *recorder) secretHeaders() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	var names []string

	for _, header := range r.seen {
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Referer"} {
			if header.Get(name) != "" {
				names = append(names, name)
			}
		}
	}

	return names
}

// The headers of a check go to the server of its URL alone: a redirect to another port, and one after that, is followed
// without them. Redirects on the same server keep them.
func TestPass_redirectToAnotherServerGetsNoHeaders(t *testing.T) {
	t.Parallel()

	other := record(t, func(path string) string {
		if path == "/first" {
			return "/second"
		}

		return ""
	})
	own := record(t, func(path string) string {
		return map[string]string{"/same": "/end", "/away": other.URL + "/first"}[path]
	})
	check := healthcheck.HTTP{Headers: map[string]string{"Authorization": "Bearer it", "X-Api-Key": "key", "Cookie": "a=b"}}

	check.URL = own.URL + "/same"
	if reason := asked(t, nil, healthcheck.Check{HTTP: &check}); reason != "" {
		t.Error(reason)
	}

	if got := own.secretHeaders(); len(got) != 7 {
		t.Errorf("the server of the URL got %v, want the three headers twice, and Referer once", got)
	}

	check.URL = strings.Replace(own.URL, "http://", "http://user:pw@", 1) + "/away?token=secret"
	if reason := asked(t, nil, healthcheck.Check{HTTP: &check}); reason != "" {
		t.Error(reason)
	}

	if got := other.secretHeaders(); len(got) > 0 {
		t.Errorf("the other server got %v", got)
	}
}

// A check that fails behind such a redirect says why the server may have refused it, without the URL.
func TestPass_failureBehindARedirectSaysWhere(t *testing.T) {
	t.Parallel()

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(other.Close)

	own := record(t, func(string) string { return other.URL + "/login?token=secret" })
	reason := asked(t, nil, healthcheck.Check{HTTP: &healthcheck.HTTP{URL: own.URL, Headers: map[string]string{"X-Api-Key": "key"}}})

	want := "the response is 401 Unauthorized, expected 200 (redirected to " + other.URL + ", without the headers of the check)"
	if !strings.HasSuffix(reason, want) {
		t.Errorf("the check says %q, want %q at the end", reason, want)
	}
}
