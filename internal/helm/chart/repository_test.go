package chart

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/repo"
)

func TestRepository_versionChoice(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	packages := map[string][]byte{}
	for _, version := range []string{"1.0.0", "1.2.0", "1.2.3", "2.0.0", "2.1.0-rc.1", "0.9.0+build.7"} {
		packages["web-"+version+".tgz"] = packed(t, simple("web", version))
	}
	s.publish(t, "", packages)
	for _, c := range []struct {
		version string
		devel   bool
		want    string
	}{
		{"", false, "2.0.0"},
		{"", true, "2.1.0-rc.1"},
		{"1.2.0", false, "1.2.0"},
		{"~1.2", false, "1.2.3"},
		{">=1.0.0 <2.0.0", false, "1.2.3"},
		{"1", true, "1.2.3"},
		{"2.1.0-rc.1", false, "2.1.0-rc.1"},
		{"0.9.0+build.7", false, "0.9.0+build.7"},
	} {
		from := s.of("web", c.version)
		from.Devel = c.devel
		pin, err := store.Resolve(t.Context(), from)
		want := Pin{Name: "web", Version: c.want, Digest: digestOf(packages["web-"+c.want+".tgz"])}
		if err != nil || pin != want {
			t.Errorf("%q devel %v: %v %v, want %v", c.version, c.devel, pin, err, want)
		}
		p, err := store.Fetch(t.Context(), from)
		installable(t, p, err, "web", c.want)
		if p.Pin != want || p.AppVersion != "v9" || p.KubeVersion != ">=1.30.0-0" || p.Deprecated {
			t.Errorf("%q: package %+v", c.version, p.Pin)
		}
	}
	if n := s.count("/index.yaml"); n != 1 {
		t.Errorf("the index was read %d times", n)
	}
}

func TestRepository_unknownChart(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	packages := map[string][]byte{"wide-1.0.0.tgz": packed(t, simple("wide", "1.0.0"))}
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0", "1.6.0"} {
		packages["web-"+version+".tgz"] = packed(t, simple("web", version))
	}
	s.publish(t, "", packages)
	_, err := store.Resolve(t.Context(), s.of("web", "3.0.0"))
	if !errors.Is(err, ErrNoVersion) {
		t.Error(err)
	}
	texts(t, err, "web", "127.0.0.1", "3.0.0", "1.6.0, 1.5.0, 1.4.0, 1.3.0, 1.2.0, …")
	if strings.Contains(err.Error(), "1.1.0") {
		t.Errorf("more than five versions: %v", err)
	}
	_, err = store.Fetch(t.Context(), s.of("web", "no version at all"))
	if !errors.Is(err, ErrNoVersion) {
		t.Error(err)
	}
	_, err = store.Resolve(t.Context(), s.of("webby", ""))
	if !errors.Is(err, ErrNoChart) {
		t.Error(err)
	}
	texts(t, err, "webby", "127.0.0.1", "web, wide")
	from := s.of("web", "")
	from.Repository += "/elsewhere"
	_, err = store.Resolve(t.Context(), from)
	if !errors.Is(err, ErrNoChart) {
		t.Error(err)
	}
	texts(t, err, "/elsewhere", "index.yaml", "404")
	s.answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusGone); return true })
	from.Repository += "/for-good"
	if _, err = store.Resolve(t.Context(), from); !errors.Is(err, ErrNoChart) {
		t.Error(err)
	}
}

func TestRepository_onlyPrereleases(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	s.publish(t, "", map[string][]byte{"web-1.0.0-rc.1.tgz": packed(t, simple("web", "1.0.0-rc.1"))})
	_, err := store.Resolve(t.Context(), s.of("web", ""))
	if !errors.Is(err, ErrNoVersion) {
		t.Error(err)
	}
	texts(t, err, "stable", "devel", "1.0.0-rc.1")
}

func TestRepository_digests(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	content := packed(t, simple("web", "1.0.0"))
	s.put("/web.tgz", content)
	index := func(digest string) {
		file := repo.NewIndexFile()
		meta := &helmchart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"}
		file.Entries["web"] = repo.ChartVersions{{Metadata: meta, URLs: []string{"web.tgz"}, Digest: digest}}
		s.index(t, file)
	}
	right := digestOf(content)
	plain := strings.TrimPrefix(right, "sha256:")
	for _, c := range []struct{ given, want string }{
		{plain, right},
		{right, right},
		{strings.ToUpper(plain), right},
		{"", ""},
		{"md5:abc", ""},
		{plain[:60], ""},
	} {
		index(c.given)
		store := NewStore(Options{})
		pin, err := store.Resolve(t.Context(), s.of("web", ""))
		if err != nil || pin.Digest != c.want {
			t.Errorf("%q: %v %v", c.given, pin, err)
		}
		p, err := store.Fetch(t.Context(), s.of("web", ""))
		if err != nil || p.Digest != right {
			t.Errorf("%q: %v", c.given, err)
		}
	}
	wrong := strings.Repeat("ab", 32)
	index(wrong)
	_, err := store.Fetch(t.Context(), s.of("web", ""))
	if !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	texts(t, err, "sha256:"+wrong, right, "/web.tgz")
}

// A repository whose content changes under a version is seen as it is a minute later, by other stores at once.
func TestRepository_newContentUnderVersion(t *testing.T) {
	s, now := serve(t), newClock()
	store := newStore(t, Options{Now: now.Now})
	from := s.of("web", "1.0.0")
	publish := func(text string) string {
		content := packed(t, simple("web", "1.0.0"), func(c *helmchart.Chart) { c.Metadata.Description = text })
		s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
		return digestOf(content)
	}
	resolved := func(s *Store) string {
		pin, err := s.Resolve(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		return pin.Digest
	}
	first := publish("first")
	if resolved(store) != first {
		t.Fatal("not the first")
	}
	second := publish("second")
	now.pass(59 * time.Second)
	if resolved(store) != first {
		t.Error("the index was not kept for a minute")
	}
	if resolved(NewStore(Options{})) != second {
		t.Error("another store sees old content")
	}
	now.pass(time.Second)
	if resolved(store) != second {
		t.Error("the index was kept for longer than a minute")
	}
	p, err := store.Fetch(t.Context(), from)
	if err != nil || p.Digest != second {
		t.Errorf("fetched %v %v", p, err)
	}
	// The expected and the present package may differ because the cached index is old.
	third := publish("third")
	if p, err = store.Fetch(t.Context(), from); err != nil || p.Digest != second {
		t.Errorf("the fetched package is not kept: %v", err)
	}
	old := fileKey{access: from.access(), at: s.URL + "/web-1.0.0.tgz", digest: second}
	store.files.forget(old, func([]byte) bool { return true })
	before := s.count("/index.yaml")
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if p, err := store.Fetch(t.Context(), from); err != nil || p.Digest != third {
				t.Errorf("not the third: %v", err)
			}
		})
	}
	group.Wait()
	if n := s.count("/index.yaml") - before; n != 1 {
		t.Errorf("the index was read %d times", n)
	}
}

func TestRepository_packageIsMissing(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	s.put("/web-1.0.0.tgz", nil)
	_, err := store.Fetch(t.Context(), s.of("web", ""))
	if !errors.Is(err, ErrNoVersion) {
		t.Error(err)
	}
	texts(t, err, "web 1.0.0", "web-1.0.0.tgz", "404")
}

func TestRepository_otherChartInPackage(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	s.publish(t, "", map[string][]byte{"web-v1.0.0.tgz": packed(t, simple("web", "v1.0.0"))})
	index := bytes.ReplaceAll(s.files["/index.yaml"], []byte("version: v1.0.0"), []byte("version: 1.0.0"))
	s.put("/index.yaml", index)
	p, err := store.Fetch(t.Context(), s.of("web", "1.0.0"))
	installable(t, p, err, "web", "1.0.0") // The same version, in other words.
	store = NewStore(Options{})
	content := packed(t, simple("other", "1.0.0"))
	s.put("/web.tgz", content)
	file := repo.NewIndexFile()
	meta := &helmchart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"}
	file.Entries["web"] = repo.ChartVersions{{Metadata: meta, URLs: []string{"web.tgz"}, Digest: digestOf(content)}}
	s.index(t, file)
	_, err = store.Fetch(t.Context(), s.of("web", ""))
	if !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	texts(t, err, "other 1.0.0", "web 1.0.0")
}

func TestFetch_packageByURL(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	content := packed(t, simple("web", "1.2.3"))
	s.put("/download", content)
	s.put("/page", []byte("<!DOCTYPE html><title>log in</title>"))
	from := Source{Chart: s.URL + "/download?token=geheim", CA: s.CA}
	pin, err := store.Resolve(t.Context(), from)
	if want := (Pin{Name: "web", Version: "1.2.3", Digest: digestOf(content)}); err != nil || pin != want {
		t.Errorf("%v %v", pin, err)
	}
	p, err := store.Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.2.3")
	if n := s.count("/download"); n != 1 {
		t.Errorf("%d downloads", n)
	}
	from.Version = "2.0.0"
	_, err = store.Fetch(t.Context(), from)
	if !errors.Is(err, ErrNoVersion) {
		t.Error(err)
	}
	texts(t, err, "1.2.3", "2.0.0", "/download")
	if strings.Contains(err.Error(), "geheim") {
		t.Errorf("the query is in: %v", err)
	}
	_, err = store.Fetch(t.Context(), Source{Chart: s.URL + "/none.tgz", CA: s.CA})
	if !errors.Is(err, ErrNoChart) {
		t.Error(err)
	}
	_, err = store.Fetch(t.Context(), Source{Chart: s.URL + "/page", CA: s.CA})
	if !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	texts(t, err, "web page")
}

func TestIndex_invalid(t *testing.T) {
	s := serve(t)
	for text, wanted := range map[string]string{
		"<html><body>log in</body></html>": "web page",
		"":                                 "empty",
		"entries: [":                       "index",
		"just: yaml\n":                     "index",
	} {
		s.put("/index.yaml", []byte(text))
		_, err := newStore(t, Options{}).Resolve(t.Context(), s.of("web", ""))
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
		texts(t, err, wanted, "127.0.0.1")
		if strings.Contains(err.Error(), "talosop-index") {
			t.Errorf("a temporary path is in: %v", err)
		}
	}
}

func TestStore_sizeLimits(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	content := packed(t, simple("web", "1.0.0"))
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
	store.packageLimit = int64(len(content)) - 1
	_, err := store.Fetch(t.Context(), s.of("web", ""))
	if !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
	texts(t, err, "web-1.0.0.tgz")
	store = newStore(t, Options{})
	store.packageLimit = int64(len(content))
	p, err := store.Fetch(t.Context(), s.of("web", ""))
	installable(t, p, err, "web", "1.0.0")
	store = newStore(t, Options{})
	store.indexLimit = 50
	if _, err = store.Resolve(t.Context(), s.of("web", "")); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestRepository_plainHTTP(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	plain := newPlainServer(t, s)
	p, err := store.Fetch(t.Context(), Source{Repository: plain, Chart: "web"})
	installable(t, p, err, "web", "1.0.0")
	_, err = store.Fetch(t.Context(), Source{Repository: strings.Replace(plain, "http://", "https://", 1), Chart: "web"})
	if !errors.Is(err, ErrCertificate) || !errors.Is(err, ErrUnreachable) || !errors.Is(err, ErrWithoutTLS) {
		t.Error(err)
	}
	texts(t, err, "does not speak TLS")
}

func TestSource_invalid(t *testing.T) {
	store := newStore(t, Options{})
	for _, from := range []Source{
		{},
		{Repository: "https://charts.example.com"},
		{Repository: "s3://bucket", Chart: "web"},
		{Repository: "charts.example.com", Chart: "web"},
		{Repository: "https://charts.example.com", Chart: "https://charts.example.com/web.tgz"},
		{Repository: "https://", Chart: "web"},
		{Chart: "git://host/web"},
		{Repository: "oci://host/UPPER", Chart: "web"},
	} {
		if _, err := store.Fetch(t.Context(), from); !errors.Is(err, ErrNoChart) {
			t.Errorf("%+v: %v", from, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Fetch(ctx, Source{Chart: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
