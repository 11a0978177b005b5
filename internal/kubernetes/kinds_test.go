package kubernetes_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// Hundreds of objects of a version cost one request for where their kinds are, also when they are
// asked for at once.
func TestKinds_areAskedForOnce(t *testing.T) {
	t.Parallel()

	var discoveries, others atomic.Int32

	a := newAuthority(t)
	server := a.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/example.org/v1" {
			discoveries.Add(1)
			answer(w, http.StatusOK, metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "example.org/v1",
				APIResources: []metav1.APIResource{{Name: "oxen", Kind: "Ox", Namespaced: true}, {Name: "oxen/status", Kind: "Ox"},
					{Name: "mice", Kind: "Mouse"}},
			})

			return
		}

		others.Add(1)

		if !strings.HasPrefix(r.URL.Path, "/apis/example.org/v1/namespaces/n/oxen/o") &&
			!strings.HasPrefix(r.URL.Path, "/apis/example.org/v1/mice/o") {
			t.Errorf("the path is %s", r.URL.Path)
		}

		answer(w, http.StatusOK, object{"apiVersion": "example.org/v1", "kind": "Ox", "metadata": object{"name": "o"}})
	})
	c := a.client(t, server.URL)

	var group sync.WaitGroup

	const many = 200

	for i := range many {
		group.Go(func() {
			kind := []string{"Ox", "Mouse"}[i%2]
			if _, err := c.GetObject(t.Context(),
				objects.Reference{APIVersion: "example.org/v1", Kind: kind, Namespace: "n",
					Name: fmt.Sprint("o", i)}); err != nil {
				t.Error(err)
			}
		})
	}

	group.Wait()

	if discoveries.Load() != 1 || others.Load() != many {
		t.Errorf("there were %d discoveries and %d other requests", discoveries.Load(), others.Load())
	}

	// An unknown kind is requested each time: it may exist by now.
	for range 2 {
		if _, err := c.GetObject(t.Context(),
			objects.Reference{APIVersion: "example.org/v1", Kind: "Late", Name: "o"}); err == nil {
			t.Error("a kind is found that no API serves")
		}
	}

	if discoveries.Load() != 3 {
		t.Errorf("there were %d discoveries", discoveries.Load())
	}
}
