package client

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// throttle refuses requests for being too many, each with what a server may ask for or not.
func throttle(w http.ResponseWriter, after string) bool {
	if after != "" {
		w.Header().Set("Retry-After", after)
	}

	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write([]byte("Too many requests, please try again later.\n"))

	return true
}

// TestThrottle_requestsAreRepeated: a busy API costs a moment, and no release.
func TestThrottle_requestsAreRepeated(t *testing.T) {
	t.Parallel()

	for name, after := range map[string]string{"soon": "1", "late": "30", "whenever": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFront(t)
			namespace := f.cluster.Namespace(t)
			s := f.open(t, t.Context(), Options{Namespace: namespace, Pause: time.Millisecond})

			var (
				mu   sync.Mutex
				seen = map[string]int{}
			)

			f.fail(func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()

				call := r.Method + " " + r.URL.Path
				seen[call]++

				// Every call is refused twice, whatever it is: to read, to create, to record.
				return seen[call] <= 2 && throttle(w, after)
			})

			_, err := install(s, "web").Run(templates(configMap("one")), nil)
			must(t, err)

			made, err := f.cluster.API().CoreV1().ConfigMaps(namespace).Get(t.Context(), "one", metav1.GetOptions{})
			must(t, err)

			if made.Data["a"] != "b" || s.RecordError() != nil {
				t.Errorf("%v, %v", made.Data, s.RecordError())
			}
		})
	}
}

// TestThrottle_forGood: it is asked so many times and no more, although client-go would repeat each of
// these by itself.
func TestThrottle_forGood(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	s := f.open(t, t.Context(), Options{Namespace: f.cluster.Namespace(t), Pause: time.Millisecond})

	var (
		mu   sync.Mutex
		seen = map[string]int{}
	)

	f.fail(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()

		seen[r.Method+" "+r.URL.Path]++

		return throttle(w, "1")
	})

	configuration := s.Configuration()
	if err := configuration.KubeClient.IsReachable(); err == nil {
		t.Error("an API that refuses everything is reachable")
	}

	if _, err := configuration.Releases.Last("web"); err == nil || !strings.Contains(err.Error(), "too many requests") {
		t.Error(err)
	}

	if _, err := s.getter.kinds.ServerGroups(); err == nil {
		t.Error("an API that refuses everything has kinds")
	}

	mu.Lock()
	defer mu.Unlock()

	for call, n := range seen {
		if n%attempts != 0 || n > 3*attempts {
			t.Errorf("%s was asked for %d times", call, n)
		}
	}

	if len(seen) == 0 {
		t.Error("nothing was asked")
	}
}

// TestThrottle_endsWithContext: what is waited for is not, once the context has ended.
func TestThrottle_endsWithContext(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	s := f.open(t, ctx, Options{Namespace: f.cluster.Namespace(t), Pause: time.Hour})

	f.fail(func(w http.ResponseWriter, _ *http.Request) bool {
		defer cancel()

		return throttle(w, "20")
	})

	if err := s.Configuration().KubeClient.IsReachable(); err == nil {
		t.Error("an API that refuses everything is reachable")
	}
}
