package chart

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A registry that redirects to another port, which redirects once more: the second redirect gets no credentials either.
// net/http copies the headers of the first request to each further one, and the host name is the same.
func TestCredentials_registryRedirectsTwice(t *testing.T) {
	oci, elsewhere := serveRegistry(t), serve(t)
	content := packed(t, simple("web", "1.0.0"))
	oci.push(t, "web:1.0.0", content)
	elsewhere.put("/content", content)
	elsewhereURL := newPlainServer(t, elsewhere)
	var leaked []string
	elsewhere.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if sent := r.Header.Get("Authorization"); sent != "" {
			leaked = append(leaked, fmt.Sprintf("%s: %s", r.URL.Path, sent))
		}
		if r.URL.Path == "/first" {
			http.Redirect(w, r, "/content", http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	registry := oci.before
	oci.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if _, _, ok := r.BasicAuth(); ok && strings.HasSuffix(r.URL.Path, digestOf(content)) {
			http.Redirect(w, r, elsewhereURL+"/first", http.StatusTemporaryRedirect)
			return true
		}
		return registry(w, r)
	})
	p, err := newStore(t, Options{}).Fetch(t.Context(), oci.of("web", ""))
	installable(t, p, err, "web", "1.0.0")
	if len(leaked) > 0 {
		t.Errorf("the other server got %q", leaked)
	}
}
