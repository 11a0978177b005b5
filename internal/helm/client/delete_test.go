package client

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// names are the ConfigMaps of a namespace that charts made.
func (f *front) names(t *testing.T, namespace string) []string {
	t.Helper()

	list, err := f.cluster.API().CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)

	var names []string

	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			names = append(names, item.Name)
		}
	}

	return names
}

// handOver makes an object that of another release.
func (f *front) handOver(t *testing.T, namespace, name, release string) {
	t.Helper()

	patch := fmt.Sprintf(`{"metadata":{"annotations":{"meta.helm.sh/release-name":%q,"meta.helm.sh/release-namespace":%q}}}`, release, namespace)
	_, err := f.cluster.API().CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, "application/merge-patch+json",
		[]byte(patch), metav1.PatchOptions{})
	must(t, err)
}

func TestDelete_keepsObjectsOfOtherReleases(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)

	var reported []string

	s := f.open(t, t.Context(), Options{Namespace: namespace, Release: "web",
		Progress: func(text string) { reported = append(reported, text) }})

	kept := strings.Replace(configMap("kept"), "name: kept", "name: kept, annotations: {helm.sh/resource-policy: keep}", 1)

	_, err := install(s, "web").Run(templates(configMap("one"), configMap("two"), configMap("three"), kept), nil)
	must(t, err)

	f.handOver(t, namespace, "one", "other")

	_, err = upgrade(s).Run("web", templates(configMap("two"), configMap("four")), nil)
	must(t, err)

	if got := f.names(t, namespace); !slices.Equal(got, []string{"four", "kept", "one", "two"}) {
		t.Errorf("after the upgrade there are %v", got)
	}

	f.handOver(t, namespace, "two", "other")

	u := action.NewUninstall(s.Configuration())
	u.Wait, u.Timeout = true, 10*time.Second

	_, err = u.Run("web")
	must(t, err)

	if got := f.names(t, namespace); !slices.Equal(got, []string{"kept", "one", "two"}) {
		t.Errorf("after the uninstall there are %v", got)
	}

	want := []string{
		"ConfigMap " + namespace + "/one: it belongs to the release " + namespace + "/other",
		"ConfigMap " + namespace + "/two: it belongs to the release " + namespace + "/other",
	}
	if got := s.Foreign(); !slices.Equal(got, want) {
		t.Errorf("foreign %q", got)
	}

	if !slices.Contains(reported, want[0]+" now and is not deleted") {
		t.Errorf("got %q", reported)
	}
}

func TestDelete_onlyObjectsOfOthers(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace, Release: "web"})

	_, err := install(s, "web").Run(templates(configMap("one")), nil)
	must(t, err)

	f.handOver(t, namespace, "one", "other")

	_, err = action.NewUninstall(s.Configuration()).Run("web")
	must(t, err)

	if got := f.names(t, namespace); !slices.Equal(got, []string{"one"}) {
		t.Errorf("after the uninstall there are %v", got)
	}
}

func TestDelete_failureFailsUpgrade(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace, Release: "web"})

	_, err := install(s, "web").Run(templates(configMap("one"), configMap("two")), nil)
	must(t, err)

	f.fail(func(w http.ResponseWriter, r *http.Request) bool {
		refused := r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps/one")
		if refused {
			w.WriteHeader(http.StatusForbidden)
		}

		return refused
	})

	_, err = upgrade(s).Run("web", templates(configMap("two")), nil)
	if err == nil || !strings.Contains(err.Error(), "delete ConfigMap "+namespace+"/one: ") {
		t.Error(err)
	}
}
