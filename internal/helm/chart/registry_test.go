package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
)

func TestRegistry_versionChoice(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	packages := map[string][]byte{}
	for _, version := range []string{"1.0.0", "1.2.3", "2.0.0", "2.1.0-rc.1", "0.9.0+build.7"} {
		packages[version] = packed(t, simple("web", version))
		s.push(t, "web:"+version, packages[version])
	}
	for _, c := range []struct {
		version string
		devel   bool
		want    string
	}{
		{"", false, "2.0.0"},
		{"", true, "2.1.0-rc.1"},
		{"1.0.0", false, "1.0.0"},
		{"1.2", false, "1.2.3"},
		{"~1", false, "1.2.3"},
		{"<1.0.0", false, "0.9.0+build.7"},
		{"0.9.0+build.7", false, "0.9.0+build.7"},
	} {
		want := Pin{Name: "web", Version: c.want, Digest: digestOf(packages[c.want])}
		separate := s.of("web", c.version)
		separate.Devel = c.devel
		joined := separate
		joined.Repository, joined.Chart = "", separate.Repository+"/web"
		for _, from := range []Source{separate, joined} {
			pin, err := store.Resolve(t.Context(), from)
			if err != nil || pin != want {
				t.Errorf("%q devel %v: %v %v, want %v", c.version, c.devel, pin, err, want)
			}
			p, err := store.Fetch(t.Context(), from)
			installable(t, p, err, "web", c.want)
			if p.Pin != want {
				t.Errorf("package %v, want %v", p.Pin, want)
			}
		}
	}
}

func TestRegistry_references(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	content := packed(t, simple("web", "1.0.0+b.1"))
	s.push(t, "web:1.0.0+b.1", content)
	image, err := remote.Get(s.tag(t, "web:1.0.0_b.1"), s.options()...)
	if err != nil {
		t.Fatal(err)
	}
	at := func(reference, version string) Source {
		from := s.of("", version)
		from.Repository, from.Chart = "", "oci://"+s.host()+"/charts/web"+reference
		return from
	}
	digest := image.Digest.String()
	for _, from := range []Source{
		at(":1.0.0+b.1", ""), at(":1.0.0_b.1", ""), at(":1.0.0+b.1", "1.0.0+b.1"),
		at("@"+digest, ""), at(":1.0.0+b.1@"+digest, ""), at("@"+digest, "1.0.0+b.1"), at("@"+digest, "~1.0"),
	} {
		p, err := store.Fetch(t.Context(), from)
		if err != nil {
			t.Errorf("%s %s: %v", from.Chart, from.Version, err)
			continue
		}
		if want := (Pin{"web", "1.0.0+b.1", digestOf(content)}); p.Pin != want {
			t.Errorf("%s: %v", from.Chart, p.Pin)
		}
	}
	for _, from := range []Source{
		at(":1.0.0+b.1", "2.0.0"), at("@"+digest, "2.0.0"), at(":2.0.0", ""), at(":latest", ""),
		at("@sha256:"+strings.Repeat("0", 64), ""), at("@sha256:123", ""),
	} {
		if _, err := store.Fetch(t.Context(), from); !errors.Is(err, ErrNoVersion) {
			t.Errorf("%s %s: %v", from.Chart, from.Version, err)
		}
	}
}

// Resolve reads no content, and few requests serve all who ask.
func TestRegistry_resolveReadsManifestAlone(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	content := packed(t, simple("web", "1.0.0"))
	s.push(t, "web:1.0.0", content)
	for range 3 {
		if _, err := store.Resolve(t.Context(), s.of("web", "1.0.0")); err != nil {
			t.Fatal(err)
		}
	}
	blob := "/v2/charts/web/blobs/" + digestOf(content)
	if n := s.downloads(blob); n != 0 {
		t.Errorf("the content was read %d times", n)
	}
	for range 3 {
		if _, err := store.Fetch(t.Context(), s.of("web", "1.0.0")); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.downloads(blob); n != 1 {
		t.Errorf("the content was read %d times", n)
	}
}

func TestRegistry_newContentUnderTag(t *testing.T) {
	s, now := serveRegistry(t), newClock()
	store := newStore(t, Options{Now: now.Now})
	var last string
	for n := range 3 {
		content := packed(t, simple("web", "1.0.0"), func(c *helmchart.Chart) { c.Metadata.Description = fmt.Sprint(n) })
		s.push(t, "web:1.0.0", content)
		pin, err := store.Resolve(t.Context(), s.of("web", "1.0.0"))
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 && pin.Digest != last {
			t.Error("the manifest was not kept for a minute")
		}
		now.pass(time.Minute)
		pin, err = store.Resolve(t.Context(), s.of("web", "1.0.0"))
		if last = digestOf(content); err != nil || pin.Digest != last {
			t.Errorf("%v %v, want %s", pin, err, last)
		}
	}
}

func TestRegistry_unknownChart(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"} {
		s.push(t, "web:"+version, packed(t, simple("web", version)))
	}
	_, err := store.Resolve(t.Context(), s.of("web", "3.0.0"))
	if !errors.Is(err, ErrNoVersion) {
		t.Error(err)
	}
	texts(t, err, "web", s.host(), "3.0.0", "1.5.0, 1.4.0, 1.3.0, 1.2.0, 1.1.0, …")
	for _, version := range []string{"", "3.0.0"} {
		_, err = store.Resolve(t.Context(), s.of("webby", version))
		if !errors.Is(err, ErrNoChart) {
			t.Error(err)
		}
		texts(t, err, s.host()+"/charts/webby")
	}
}

func TestRegistry_otherArtifacts(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(s.tag(t, "web:1.0.0"), image, s.options()...); err != nil {
		t.Fatal(err)
	}
	_, err = store.Resolve(t.Context(), s.of("web", "1.0.0"))
	if !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	texts(t, err, "web", "container image")
	list := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	if err := remote.WriteIndex(s.tag(t, "web:2.0.0"), list, s.options()...); err != nil {
		t.Fatal(err)
	}
	_, err = store.Resolve(t.Context(), s.of("web", "2.0.0"))
	if !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	texts(t, err, "several platforms")
}

// An artifact that is no chart is named by its kind; a chart needs no annotations.
func TestRegistry_manifests(t *testing.T) {
	s := serveRegistry(t)
	content := packed(t, simple("web", "1.0.0"))
	s.push(t, "web:1.0.0", content)
	found, err := remote.Image(s.tag(t, "web:1.0.0"), s.options()...)
	if err != nil {
		t.Fatal(err)
	}
	original, err := found.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	answer := func(change func(*ocispec.Manifest)) (Pin, error) {
		var manifest ocispec.Manifest
		if err := json.Unmarshal(original, &manifest); err != nil {
			t.Fatal(err)
		}
		change(&manifest)
		body, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		s.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/manifests/1.0.0") {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				_, _ = w.Write(body)
				return true
			}
			s.handler.ServeHTTP(w, r)
			return true
		})
		return newStore(t, Options{}).Resolve(t.Context(), s.of("web", "1.0.0"))
	}
	pin, err := answer(func(m *ocispec.Manifest) { m.Annotations = nil })
	if want := (Pin{"web", "1.0.0", digestOf(content)}); err != nil || pin != want {
		t.Errorf("%v %v", pin, err)
	}
	for wanted, change := range map[string]func(*ocispec.Manifest){
		"type application/x.policy": func(m *ocispec.Manifest) {
			m.ArtifactType, m.Config.MediaType = "application/x.policy", ocispec.MediaTypeEmptyJSON
		},
		"config of type application/x.other": func(m *ocispec.Manifest) { m.Config.MediaType = "application/x.other" },
		"without a config":                   func(m *ocispec.Manifest) { m.Config = ocispec.Descriptor{} },
		"no layer of type":                   func(m *ocispec.Manifest) { m.Layers = nil },
		"is larger than": func(m *ocispec.Manifest) {
			m.Annotations, m.Config.Size = nil, largestManifest+1
		},
	} {
		_, err := answer(change)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", wanted, err)
		}
		texts(t, err, "oci://"+s.host()+"/charts/web", wanted)
	}
}

// A chart may be one of several artifacts of an index.
func TestRegistry_chartInIndex(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	s.push(t, "web:1.0.0", packed(t, simple("web", "1.0.0")))
	found, err := remote.Image(s.tag(t, "web:1.0.0"), s.options()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(s.tag(t, "web:all"), mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: found}),
		s.options()...); err != nil {
		t.Fatal(err)
	}
	from := s.of("web:all", "")
	p, err := store.Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.0.0")
}

func TestRegistry_damagedContent(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	content := packed(t, simple("web", "1.0.0"))
	s.push(t, "web:1.0.0", content)
	authorize := s.before
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, digestOf(content)) {
			bad := append([]byte{}, content...)
			bad[len(bad)/2] ^= 1
			_, _ = w.Write(bad)
			return true
		}
		return authorize(w, r)
	})
	_, err := store.Fetch(t.Context(), s.of("web", "1.0.0"))
	if !errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
	texts(t, err, digestOf(content), "expected")
	store.packageLimit = 10
	if _, err = store.Fetch(t.Context(), s.of("web", "1.0.0")); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestRegistry_withoutTLS(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	tls := serveRegistry(t)
	tls.push(t, "web:1.0.0", packed(t, simple("web", "1.0.0")))
	image, err := remote.Image(tls.tag(t, "web:1.0.0"), tls.options()...)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(s.URL, "http://")
	tag, err := name.NewTag(host+"/charts/web:1.0.0", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	store := newStore(t, Options{})
	from := Source{Repository: "oci://" + host + "/charts", Chart: "web", PlainHTTP: true}
	p, err := store.Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.0.0")
	from.PlainHTTP = false
	_, err = store.Fetch(t.Context(), from)
	if !errors.Is(err, ErrCertificate) || !errors.Is(err, ErrWithoutTLS) {
		t.Error(err)
	}
	texts(t, err, host, "does not speak TLS")
}

// An index may place its charts in a registry, as Bitnami's does.
func TestRepository_pointsToRegistry(t *testing.T) {
	oci, s := serveRegistry(t), serve(t)
	content := packed(t, simple("web", "1.0.0"))
	oci.push(t, "web:1.0.0", content)
	s.publish(t, "oci://"+oci.host()+"/charts", map[string][]byte{"web-1.0.0.tgz": content})
	index := s.files["/index.yaml"]
	s.put("/index.yaml", []byte(strings.ReplaceAll(string(index), "/web-1.0.0.tgz", "/web:1.0.0")))
	from := s.of("web", "")
	from.CA += oci.CA
	from.Username, from.Password = testUser, testPassword
	if _, err := newStore(t, Options{}).Fetch(t.Context(), from); !errors.Is(err, ErrCertificate) {
		t.Errorf("the registry got the settings, and the credentials, of the repository: %v", err)
	}
	from.PassCredentials = true
	p, err := newStore(t, Options{}).Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.0.0")
}

// The same package has one digest in every place.
func TestDigest_sameFromAllSources(t *testing.T) {
	oci, s, store := serveRegistry(t), serve(t), newStore(t, Options{})
	content := packed(t, simple("web", "1.0.0"))
	oci.push(t, "web:1.0.0", content)
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
	file := filepath.Join(t.TempDir(), "web.tgz")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []Source{
		oci.of("web", "1.0.0"), s.of("web", ""), {Chart: file}, {Chart: s.URL + "/web-1.0.0.tgz", CA: s.CA},
	} {
		pin, err := store.Resolve(t.Context(), from)
		if want := (Pin{"web", "1.0.0", digestOf(content)}); err != nil || pin != want {
			t.Errorf("resolved %v %v, want %v", pin, err, want)
		}
		p, err := store.Fetch(t.Context(), from)
		if err != nil || p.Pin != pin {
			t.Errorf("fetched %v %v", p, err)
		}
	}
}

// tag is a reference for go-containerregistry.
func (s *ociServer) tag(t *testing.T, reference string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(s.host() + "/charts/" + reference)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func (s *ociServer) options() []remote.Option {
	return []remote.Option{
		remote.WithTransport(&basicAuth{s.Client().Transport}),
	}
}

type basicAuth struct{ base http.RoundTripper }

func (b *basicAuth) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.SetBasicAuth(testUser, testPassword)
	return b.base.RoundTrip(req)
}

// downloads counts the reads of a blob that were answered.
func (s *ociServer) downloads(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read[path]
}
