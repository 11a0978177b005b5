package chart

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// Twenty addons at once are one download of the index and of each package.
func TestStore_twentyAtOnceShareOneRequest(t *testing.T) {
	const many = 20
	s, oci, store := serve(t), serveRegistry(t), newStore(t, Options{})
	packages := map[string][]byte{}
	for n := range many {
		name := fmt.Sprintf("c%d", n)
		packages[name+"-1.0.0.tgz"] = packed(t, simple(name, "1.0.0"))
	}
	packages["web-1.0.0.tgz"] = packed(t, simple("web", "1.0.0"))
	s.publish(t, "", packages)
	oci.push(t, "web:1.0.0", packages["web-1.0.0.tgz"])
	var group sync.WaitGroup
	for n := range many {
		own := fmt.Sprintf("c%d", n)
		for _, from := range []Source{s.of("web", ""), s.of(own, ""), oci.of("web", "1.0.0")} {
			group.Go(func() {
				_, err := store.Resolve(t.Context(), from)
				if err != nil {
					t.Error(err)
				}
				p, err := store.Fetch(t.Context(), from)
				if err != nil || p.Name != from.Chart {
					t.Errorf("%v %v", p, err)
				}
			})
		}
	}
	group.Wait()
	for path := range packages {
		if n := s.count("/" + path); n != 1 {
			t.Errorf("%s was read %d times", path, n)
		}
	}
	if n := s.count("/index.yaml"); n != 1 {
		t.Errorf("the index was read %d times", n)
	}
	if n := oci.downloads("/v2/charts/web/manifests/1.0.0"); n != 1 {
		t.Errorf("the manifest was read %d times", n)
	}
	if n := oci.downloads("/v2/charts/web/blobs/" + digestOf(packages["web-1.0.0.tgz"])); n != 1 {
		t.Errorf("the content was read %d times", n)
	}
}

// A caller that gives up does not cancel the download for the others.
func TestCache_oneCallerGivesUp(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/index.yaml" {
			return false
		}
		arrived <- struct{}{}
		select {
		case <-release:
			return false
		case <-r.Context().Done():
			return true
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	impatient, patient := make(chan error, 1), make(chan error, 1)
	go func() { _, err := store.Fetch(ctx, s.of("web", "")); impatient <- err }()
	<-arrived
	go func() { _, err := store.Fetch(t.Context(), s.of("web", "")); patient <- err }()
	waitFor(t, func() bool { return waiting(store.indexes) == 2 })
	cancel()
	if err := <-impatient; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	if err := <-patient; err != nil {
		t.Error(err)
	}
	if n := s.count("/index.yaml"); n != 1 {
		t.Errorf("the index was read %d times", n)
	}
}

// After all callers gave up, the next one starts again.
func TestCache_allCallersGiveUp(t *testing.T) {
	c := newCache[string, int](10, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() { <-begun; cancel() }()
	_, _, err := c.get(ctx, "k", 0, func(ctx context.Context) (int, int64, error) {
		close(begun)
		<-ctx.Done()
		defer close(ended)
		return 0, 0, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	value, known, err := c.get(t.Context(), "k", 0, func(context.Context) (int, int64, error) { return 5, 1, nil })
	if value != 5 || known || err != nil {
		t.Error(value, known, err)
	}
	<-ended
	if value, known, err = c.get(t.Context(), "k", 0, nil); value != 5 || !known || err != nil {
		t.Error(value, known, err)
	}
}

func TestCache_failuresAreNotKept(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	if _, err := store.Fetch(t.Context(), s.of("web", "")); !errors.Is(err, ErrNoChart) {
		t.Fatal(err)
	}
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	p, err := store.Fetch(t.Context(), s.of("web", ""))
	installable(t, p, err, "web", "1.0.0")
}

func TestCache_leastRecentlyUsedGoes(t *testing.T) {
	now := newClock()
	c := newCache[string, string](10, now.Now)
	made := 0
	get := func(key string, size int64, age time.Duration) {
		t.Helper()
		value, _, err := c.get(t.Context(), key, age, func(context.Context) (string, int64, error) {
			made++
			return strings.ToUpper(key), size, nil
		})
		if value != strings.ToUpper(key) || err != nil {
			t.Fatal(value, err)
		}
	}
	expect := func(want int) {
		t.Helper()
		if made != want {
			t.Fatalf("%d were made, want %d", made, want)
		}
		if c.used > c.limit || len(c.kept) != c.order.Len() {
			t.Fatalf("%d of %d bytes, %d and %d values", c.used, c.limit, len(c.kept), c.order.Len())
		}
	}
	get("a", 4, 0)
	get("b", 4, 0)
	get("a", 4, 0)
	expect(2)
	get("c", 4, 0) // b goes: a was used since.
	get("a", 4, 0)
	get("c", 4, 0)
	expect(3)
	get("b", 4, 0) // a goes.
	get("c", 4, 0)
	expect(4)
	get("huge", 11, 0) // Too large to be kept, and nothing goes for it.
	get("huge", 11, 0)
	get("b", 4, 0)
	get("c", 4, 0)
	expect(6)
	get("c", 4, time.Minute)
	expect(6)
	now.pass(time.Minute)
	get("c", 4, time.Minute)
	expect(7)
	get("c", 4, time.Minute)
	expect(7)
}

// The packages that are kept are bounded; those that went are fetched again.
func TestStore_keptPackagesAreBounded(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	packages := map[string][]byte{}
	for _, name := range []string{"one", "two"} {
		packages[name+"-1.0.0.tgz"] = packed(t, simple(name, "1.0.0"))
	}
	s.publish(t, "", packages)
	store.files.limit = int64(max(len(packages["one-1.0.0.tgz"]), len(packages["two-1.0.0.tgz"])))
	for range 2 {
		for _, name := range []string{"one", "two"} {
			p, err := store.Fetch(t.Context(), s.of(name, ""))
			installable(t, p, err, name, "1.0.0")
		}
	}
	if n := s.count("/one-1.0.0.tgz"); n != 2 {
		t.Errorf("%d downloads", n)
	}
}

// Of a large index little is kept.
func TestIndex_keptSizeIsSmall(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	long := strings.Repeat("a long description ", 500)
	s.publish(t, "", map[string][]byte{
		"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"), func(c *helmchart.Chart) { c.Metadata.Description = long }),
	})
	if _, err := store.Resolve(t.Context(), s.of("web", "")); err != nil {
		t.Fatal(err)
	}
	if store.indexes.used == 0 || store.indexes.used > 1000 {
		t.Errorf("%d bytes of an index of %d", store.indexes.used, len(s.files["/index.yaml"]))
	}
}

func waiting[K comparable, V any](c *cache[K, V]) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, one := range c.calls {
		sum += one.waiting
	}
	return sum
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
