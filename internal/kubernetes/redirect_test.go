package kubernetes_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// A redirect of an API server leads to no other server and to no connection without encryption: a client adds its token
// to everything that it sends.
func TestKubeconfig_redirectStaysWithTheServer(t *testing.T) {
	t.Parallel()

	var moved atomic.Int32

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			moved.Add(1)
			answer(w, http.StatusOK, map[string]any{})

			return
		}

		http.Redirect(w, r, "http://elsewhere.invalid/moved", http.StatusFound)
	}))
	t.Cleanup(server.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	content := kubeconfigOf(server.URL, ca, "token: abc")
	c, err := kubernetes.NewFromKubeconfig(api.Kubeconfig{Content: []byte(content)}, api.Options{})
	check(t, err)
	t.Cleanup(c.Close)

	if _, err := c.CoreV1().RESTClient().Get().AbsPath("/api/v1/first").DoRaw(t.Context()); err != nil {
		t.Error(err)
	}

	if n := moved.Load(); n != 1 {
		t.Errorf("the server got %d redirected requests over TLS, want 1", n)
	}
}
