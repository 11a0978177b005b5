package kubernetes_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// library makes requests as one does that knows one server only, and no context of ours.
func library(t *testing.T, ctx context.Context, c *kubernetes.Client) clientgo.Interface { //nolint:revive // the test comes first
	t.Helper()

	api, err := clientgo.NewForConfig(c.Config(ctx))
	check(t, err)

	return api
}

// A library gets an answer as long as one server gives one, however large it is, and has no
// credentials in its hands.
func TestConfig_asksEveryServer(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)
	large := strings.Repeat("x", 8<<20)
	server := a.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method == http.MethodPost && len(body) < len(large) {
			t.Errorf("the server was sent %d bytes, %v", len(body), err)
		}

		answer(w, http.StatusOK, corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "c"},
			Data: map[string]string{"a": large},
		})
	})
	c := a.client(t, "https://"+closedPort(t), server.Listener.Addr().String())
	maps := library(t, t.Context(), c).CoreV1().ConfigMaps("default")

	found, err := maps.Get(t.Context(), "c", metav1.GetOptions{})
	check(t, err)

	if found.Data["a"] != large {
		t.Errorf("the answer has %d bytes", len(found.Data["a"]))
	}

	_, err = maps.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": large}},
		metav1.CreateOptions{})
	check(t, err)

	config := c.Config(t.Context())
	if tls := config.TLSClientConfig; len(tls.CertData)+len(tls.KeyData)+len(config.BearerToken)+len(config.Password) > 0 {
		t.Error("there are credentials in the configuration")
	}
}

// What the servers say is passed on as it is; what none of them says is ErrNoAnswer.
func TestConfig_passesOnWhatServersSay(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)

	for name, test := range map[string]struct {
		code   int32
		reason metav1.StatusReason
		is     func(error) bool
		// asked is how many servers are, of two, when something is read and when it is made.
		reading, making int32
	}{
		"a conflict":            {http.StatusConflict, metav1.StatusReasonConflict, apierrors.IsConflict, 1, 1},
		"something that exists": {http.StatusConflict, metav1.StatusReasonAlreadyExists, apierrors.IsAlreadyExists, 1, 1},
		"no permission":         {http.StatusForbidden, metav1.StatusReasonForbidden, apierrors.IsForbidden, 1, 1},
		"a webhook that fails": {http.StatusInternalServerError, metav1.StatusReasonInternalError, apierrors.IsInternalError,
			2, 1},
		"an API that is gone": {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			apierrors.IsServiceUnavailable, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var asked atomic.Int32

			handler := func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("Retry-After", "3600")
				answer(w, int(test.code), metav1.Status{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: test.code,
					Reason: test.reason,
				})
			}
			first, other := a.apiServer(t, handler), a.apiServer(t, handler)
			maps := library(t, t.Context(),
				a.client(t, first.URL, other.Listener.Addr().String())).CoreV1().ConfigMaps("default")

			if _, err := maps.Get(t.Context(), "c", metav1.GetOptions{}); !test.is(err) ||
				errors.Is(err, api.ErrNoAnswer) {
				t.Errorf("reading gives %v", err)
			}

			if n := asked.Swap(0); n != test.reading {
				t.Errorf("%d servers were asked, want %d", n, test.reading)
			}

			if _, err := maps.Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{}); !test.is(err) {
				t.Errorf("making gives %v", err)
			}

			if n := asked.Load(); n != test.making {
				t.Errorf("%d servers were asked to make it, want %d", n, test.making)
			}
		})
	}

	t.Run("nothing", func(t *testing.T) {
		t.Parallel()

		a := library(t, t.Context(), a.client(t, "https://"+closedPort(t), closedPort(t)))

		var wrapped *url.Error
		if _, err := a.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); !errors.Is(err,
			api.ErrNoAnswer) || !errors.As(err, &wrapped) {
			t.Errorf("reading gives %v", err)
		}
	})
}

// What may have been made by a server is not asked of another one.
func TestConfig_makesNothingTwice(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)

	var asked atomic.Int32

	handler := func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}
	first, other := a.apiServer(t, handler), a.apiServer(t, handler)
	maps := library(t, t.Context(), a.client(t, first.URL, other.Listener.Addr().String())).CoreV1().ConfigMaps("default")

	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{}); !errors.Is(err,
		api.ErrNoAnswer) || asked.Swap(0) != 1 {
		t.Errorf("making gives %v", err)
	}

	if err := maps.Delete(t.Context(), "c", metav1.DeleteOptions{}); !errors.Is(err, api.ErrNoAnswer) ||
		asked.Load() != 2 {
		t.Errorf("deleting gives %v, asked of %d", err, asked.Load())
	}
}

// Requests end with the context of the configuration, whatever they were given: the one that runs,
// a watch, and those that come later.
func TestConfig_endsWithItsContext(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)
	under := make(chan string, 10)
	server := a.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			answer(w, http.StatusOK, metav1.WatchEvent{Type: "ADDED",
				Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)}})
			w.(http.Flusher).Flush()
		}

		under <- path.Base(r.URL.Path)
		<-r.Context().Done()
	})

	cause := errors.New("the apply was interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	maps := library(t, ctx, a.client(t, server.URL)).CoreV1().ConfigMaps("default")

	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	check(t, err)

	if first := <-watch.ResultChan(); first.Object == nil {
		t.Errorf("the watch begins with %v", first)
	}

	<-under

	done := make(chan error, 1)

	go func() {
		_, err := maps.Get(t.Context(), "c", metav1.GetOptions{})
		done <- err
	}()

	<-under
	cancel(cause)

	if err := <-done; !errors.Is(err, cause) || !errors.Is(err, api.ErrNoAnswer) {
		t.Errorf("the running request ends with %v", err)
	}

	for range watch.ResultChan() {
	}

	if _, err := maps.Get(t.Context(), "c", metav1.GetOptions{}); !errors.Is(err, cause) {
		t.Errorf("a later request ends with %v", err)
	}

	// The caller's own context counts, too.
	own, end := context.WithCancelCause(t.Context())
	maps = library(t, t.Context(), a.client(t, server.URL)).CoreV1().ConfigMaps("default")

	go func() {
		_, err := maps.Get(own, "own", metav1.GetOptions{})
		done <- err
	}()

	// The request before may have come this far.
	for name := ""; name != "own"; name = <-under {
	}

	end(cause)

	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("a request whose own context ended gives %v", err)
	}
}
