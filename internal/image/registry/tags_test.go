package registry_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/image/registry"
)

// served is a registry that answers the requests for tags of one repository.
func served(t *testing.T, answer http.HandlerFunc) registry.Repository {
	t.Helper()

	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)

	repository, err := registry.Parse(server.URL + "/mirror/kubelet")
	if err != nil {
		t.Fatal(err)
	}

	if want := server.URL + "/v2/mirror/kubelet/tags/list"; repository.URL() != want {
		t.Errorf("the URL is %s, want %s", repository.URL(), want)
	}

	return repository
}

func page(w http.ResponseWriter, tags ...string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"name": "mirror/kubelet", "tags": tags})
}

func TestParse(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]registry.Repository{
		"ghcr.io/siderolabs/kubelet":         {Registry: "ghcr.io", Name: "siderolabs/kubelet"},
		"https://ghcr.io/siderolabs/kubelet": {Registry: "ghcr.io", Name: "siderolabs/kubelet"},
		"http://10.0.0.2:5000/kubelet":       {Registry: "10.0.0.2:5000", Name: "kubelet", PlainHTTP: true},
	} {
		if got, err := registry.Parse(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}

	for _, text := range []string{"", "ghcr.io/siderolabs/kubelet:v1.36.0", "ftp://ghcr.io/kubelet", "http://",
		"user:secret@ghcr.io/kubelet", "ghcr.io/kubelet@sha256:" + strings.Repeat("0", 64)} {
		if got, err := registry.Parse(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// A registry answers page by page.
func TestTags_ofAllPages(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())

	repository := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("last") == "" {
			w.Header().Set("Link", `</v2/mirror/kubelet/tags/list?n=2&last=v1.36.1>; rel="next"`)
			page(w, "v1.36.0", "v1.36.1")

			return
		}

		page(w, "v1.36.2")
	})

	tags, err := repository.Tags(t.Context())
	if diff := cmp.Diff([]string{"v1.36.0", "v1.36.1", "v1.36.2"}, tags); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// login stores credentials for a registry as `docker login` does.
func login(t *testing.T, host string) {
	t.Helper()

	dir := t.TempDir()
	content := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("alice:hunter2")))

	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	t.Setenv("DOCKER_CONFIG", dir)
}

// Credentials are sent to their registry, and not to a server that it redirects to, also after a second redirect.
func TestTags_credentialsStayWithTheirServer(t *testing.T) {
	var leaked []string

	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent := r.Header.Get("Authorization"); sent != "" {
			leaked = append(leaked, r.URL.Path)
		}

		if r.URL.Path == "/first" {
			http.Redirect(w, r, "/second", http.StatusTemporaryRedirect)

			return
		}

		page(w, "v1.36.0")
	}))
	t.Cleanup(elsewhere.Close)

	repository := served(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "alice" || password != "hunter2" {
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)

			return
		}

		http.Redirect(w, r, elsewhere.URL+"/first", http.StatusTemporaryRedirect)
	})

	t.Setenv("DOCKER_CONFIG", t.TempDir())

	if _, err := repository.Tags(t.Context()); err == nil || !strings.Contains(err.Error(), "`docker login`") {
		t.Errorf("without credentials: %v", err)
	}

	login(t, repository.Registry)

	if tags, err := repository.Tags(t.Context()); err != nil || len(tags) != 1 || len(leaked) > 0 {
		t.Errorf("found %v, %v; credentials went to %q", tags, err, leaked)
	}
}

// An answer without an end is an error, and so is one that is no list. The error quotes little of it.
func TestTags_limits(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())

	long := strings.Repeat("x", 5<<20)

	for name, test := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"pages without an end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</v2/mirror/kubelet/tags/list?last=again>; rel="next"`)
			page(w, "again")
		}, "more than 100000 tags or 500 pages"},
		"a long page":    {func(w http.ResponseWriter, _ *http.Request) { page(w, long) }, "decode response"},
		"redirects":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v2/", http.StatusFound) }, "more than 10 redirects"},
		"no list":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "decode response"},
		"a long refusal": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, long, http.StatusForbidden) }, "403 Forbidden"},
		"no repository": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"errors":[{"code":"NAME_UNKNOWN","message":"` + strings.Repeat("long ", 1000) + `"}]}`))
		}, "404 Not Found: name unknown: long long"},
	} {
		_, err := served(t, test.answer).Tags(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.says) || len(err.Error()) > 400 {
			t.Errorf("%s: got %.600v, want %s", name, err, test.says)
		}
	}
}

func TestTags_canceled(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())

	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")

	repository := served(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(reason)
		<-r.Context().Done()
	})

	if _, err := repository.Tags(ctx); !errors.Is(err, reason) {
		t.Errorf("the error is %v", err)
	}
}
