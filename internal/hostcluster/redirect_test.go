package hostcluster

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// A redirect of the host's API server to another one is an error: the transport adds the token of the host to
// everything that goes through it.
func TestNewTransport_redirectToAnotherServerIsRefused(t *testing.T) {
	t.Parallel()

	var reached atomic.Int32

	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(other.Close)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	t.Cleanup(server.Close)

	base, transport, closeIdle, err := newTransport(&rest.Config{Host: server.URL, BearerToken: "it"})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(closeIdle)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
	if err != nil {
		t.Fatal(err)
	}

	response, err := (&http.Client{Transport: retrying{transport}}).Do(request)
	if err == nil {
		_ = response.Body.Close()
	}

	if err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL) {
		t.Errorf("the error is %v", err)
	}

	if n := reached.Load(); n > 0 {
		t.Errorf("the other server got %d requests", n)
	}
}
