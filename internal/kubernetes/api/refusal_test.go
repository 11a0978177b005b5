package api

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// A server that returns what it received leaks neither tokens nor passwords, and its text stays otherwise.
func TestAuthenticate_hidesWhatServersRepeat(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Authorization")
		_, word, _ := strings.Cut(header, " ")
		plain, _ := base64.StdEncoding.DecodeString(word)

		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "refused: "+header+" or "+string(plain)+" by nobody")
	}))
	t.Cleanup(server.Close)

	for secret, config := range map[string]*rest.Config{
		"the-token":    {BearerToken: "the-token"},
		"the-password": {Username: "me", Password: "the-password"},
	} {
		transport, err := Authenticate(config, http.DefaultTransport)
		if err != nil {
			t.Fatal(err)
		}

		response, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()

		if encoded := base64.StdEncoding.EncodeToString([]byte("me:" + secret)); err != nil ||
			strings.Contains(string(text), secret) || strings.Contains(string(text), encoded) ||
			!strings.HasPrefix(string(text), "refused: ") || !strings.HasSuffix(string(text), " by nobody") {
			t.Errorf("%q %v", text, err)
		}
	}
}
