package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// identity is a client certificate that any server here takes.
func identity(t *testing.T, s *server) (certificate, key string) {
	t.Helper()
	encoded, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return s.CA, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// Settings for one server apply to no other: neither to a server that its index or a redirect leads to, nor to the
// dependencies of a chart.
func TestTLS_settingsStayWithTheirServer(t *testing.T) {
	ask := func(s *httptest.Server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	}
	main, other, oci := serve(t), serve(t, ask), serveRegistry(t)
	content := packed(t, simple("web", "1.0.0"))
	main.publish(t, other.URL, map[string][]byte{"web-1.0.0.tgz": content})
	other.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
	oci.push(t, "web:1.0.0", content)

	var reached, identified atomic.Bool
	other.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		reached.Store(true)
		identified.Store(len(r.TLS.PeerCertificates) > 0)
		return false
	})
	redirect := func(when func(*http.Request) bool, next func(http.ResponseWriter, *http.Request) bool,
	) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !when(r) {
				return next(w, r)
			}
			http.Redirect(w, r, other.URL+"/web-1.0.0.tgz", http.StatusTemporaryRedirect)
			return true
		}
	}
	main.answer(redirect(func(r *http.Request) bool { return r.URL.Path == "/moved.tgz" },
		func(http.ResponseWriter, *http.Request) bool { return false }))
	oci.answer(redirect(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, digestOf(content)) },
		func(w http.ResponseWriter, r *http.Request) bool { oci.handler.ServeHTTP(w, r); return true }))

	c := dependsOn(&helmchart.Dependency{Name: "web", Version: "1.x", Repository: other.URL})(simple("app", "1.0.0"))
	folder := folderOf(t, t.TempDir(), c, nil)
	certificate, key := identity(t, main)

	for name, from := range map[string]Source{
		"index":      {Repository: main.URL, Chart: "web"},
		"redirect":   {Chart: main.URL + "/moved.tgz"},
		"registry":   {Repository: "oci://" + oci.host() + "/charts", Chart: "web", Version: "1.0.0"},
		"dependency": {Chart: folder, UpdateDependencies: true},
	} {
		for what, set := range map[string]func(*Source){
			"CA":       func(from *Source) { from.CA = main.CA },
			"insecure": func(from *Source) { from.InsecureSkipTLSVerify = true },
		} {
			from.ClientCertificate, from.ClientKey = certificate, key
			set(&from)
			reached.Store(false)
			identified.Store(false)
			_, err := newStore(t, Options{}).Fetch(t.Context(), from)
			if !errors.Is(err, ErrCertificate) || reached.Load() || identified.Load() {
				t.Errorf("%s, %s: reached %v, with the client certificate %v: %v", name, what, reached.Load(), identified.Load(),
					err)
			} else {
				texts(t, err, "pass_credentials")
			}
			// The user's explicit wish.
			from.PassCredentials = true
			if _, err := newStore(t, Options{}).Fetch(t.Context(), from); err != nil || !identified.Load() {
				t.Errorf("%s, %s, passed on: %v", name, what, err)
			}
			from.PassCredentials = false
		}
	}
}

// bomb is a package of files of nothing but zeros.
func bomb(t *testing.T, sizes map[string]int) []byte {
	t.Helper()
	files := map[string][]byte{}
	for name, size := range sizes {
		files[name] = make([]byte, size)
	}
	return archived(t, files)
}

// nested is a package that has another one as its dependencies.
func nested(t *testing.T, inner []byte, times int) []byte {
	t.Helper()
	files := map[string][]byte{}
	for n := range times {
		files[fmt.Sprintf("charts/sub-%d.tgz", n)] = inner
	}
	return archived(t, files)
}

func archived(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	files["Chart.yaml"] = []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")
	out := &bytes.Buffer{}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		header := &tar.Header{Name: "web/" + name, Mode: 0o600, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A small package may hold much: in one file, in many files, in packages within it.
func TestPackage_unpackedSize(t *testing.T) {
	s := serve(t)
	many := map[string]int{}
	for n := range int(mostFiles) + 1 {
		many["files/"+strconv.Itoa(n)] = 0
	}
	few := map[string]int{}
	for n := range 15 {
		few["files/"+strconv.Itoa(n)] = 4 << 20
	}
	for name, content := range map[string][]byte{
		"large": bomb(t, map[string]int{"files/a": 6 << 20}),
		"many":  bomb(t, many),
		"twice": nested(t, bomb(t, few), 2),
		"deep":  nested(t, nested(t, bomb(t, few), 1), 2),
	} {
		t.Run(name, func(t *testing.T) {
			s.put("/web.tgz", content)
			_, err := newStore(t, Options{}).Fetch(t.Context(), Source{Chart: s.URL + "/web.tgz", CA: s.CA})
			if !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrDamaged) {
				t.Errorf("%d bytes: %v", len(content), err)
			}
		})
	}
	s.put("/web.tgz", nested(t, bomb(t, few), 1))
	if _, err := newStore(t, Options{}).Fetch(t.Context(), Source{Chart: s.URL + "/web.tgz", CA: s.CA}); err != nil {
		t.Errorf("within all bounds: %v", err)
	}
}

// A registry may list tags for ever.
func TestRegistry_endlessTags(t *testing.T) {
	oci := serveRegistry(t)
	pages := 0
	oci.answer(func(w http.ResponseWriter, r *http.Request) bool {
		pages++
		w.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, r.URL.Path, pages))
		_, _ = w.Write([]byte(`{"name": "charts/web", "tags": ["1.0.0"]}`))
		return true
	})
	from := oci.of("web", ">=2.0.0")
	_, err := newStore(t, Options{}).Resolve(t.Context(), from)
	if !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if pages > mostTagPages+1 {
		t.Errorf("%d pages were read", pages)
	}
}
