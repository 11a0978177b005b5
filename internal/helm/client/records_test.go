package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRecords_tooLarge(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	s := f.open(t, t.Context(), Options{Namespace: f.cluster.Namespace(t)})

	for size, name := range map[int]string{900 << 10: "for-its-data", 3 << 20: "as-a-request"} {
		content := make([]byte, size)
		_, _ = rand.Read(content)

		c := templates(configMap(name))
		c.Files = []*helmchart.File{{Name: "dashboards.bin", Data: content}}

		_, err := install(s, name).Run(c, nil)
		if err == nil || !strings.Contains(err.Error(), "exceeds the 1 MiB") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if s.RecordError() == nil {
		t.Error("no record is missing")
	}
}

func TestRecords_failureIsRemembered(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})

	refuse := func(w http.ResponseWriter, r *http.Request) bool {
		refused := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/secrets/sh.helm.release.v1.web.")
		if refused {
			w.WriteHeader(http.StatusForbidden)
		}

		return refused
	}

	f.fail(refuse)

	// Helm takes this for a success.
	rel, err := install(s, "web").Run(templates(configMap("one")), nil)
	must(t, err)

	if err := s.RecordError(); err == nil ||
		!strings.HasPrefix(err.Error(), "record the release in Secret sh.helm.release.v1.web.v1: ") {
		t.Error(err)
	}

	f.fail(nil)
	must(t, s.Configuration().Releases.Update(rel))
	must(t, s.RecordError())
}

func TestRecords_damaged(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)

	var reported []string

	s := f.open(t, t.Context(), Options{Namespace: namespace, Progress: func(text string) { reported = append(reported, text) }})

	_, err := f.cluster.API().CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.web.v1",
			Labels: map[string]string{"owner": "helm", "name": "web"}},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte("confidential")},
	}, metav1.CreateOptions{})
	must(t, err)

	releases := s.Configuration().Releases
	if _, err := releases.Get("web", 1); err == nil ||
		!strings.Contains(err.Error(), "no release record that Helm can read in Secret sh.helm.release.v1.web.v1") {
		t.Error(err)
	}

	if _, err := releases.ListReleases(); err != nil {
		t.Error(err)
	}

	if text := strings.Join(reported, "\n"); !strings.Contains(text, "failed to decode release") ||
		strings.Contains(text, "99 111 110 102") {
		t.Errorf("got %q", text)
	}
}

func TestSession_graceBeginsWithTheEnd(t *testing.T) {
	f := newFront(t)
	namespace := f.cluster.Namespace(t)

	ctx, cancel := context.WithCancel(t.Context())
	s := f.open(t, ctx, Options{Namespace: namespace})

	rel, err := install(s, "web").Run(templates(configMap("one")), nil)
	must(t, err)

	cancel()
	must(t, s.Configuration().Releases.Update(rel))
	s.Close()

	if err := s.Configuration().Releases.Update(rel); err == nil {
		t.Error("a closed session writes records")
	}
}
