package redirect_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

func TestSameOrigin(t *testing.T) {
	t.Parallel()

	for other, same := range map[string]bool{
		"https://example.org/b":        true,
		"https://example.org:443/":     true,
		"https://EXAMPLE.org":          true,
		"https://user:pw@example.org/": true,
		"http://example.org/":          false,
		"https://example.org:8443/":    false,
		"https://a.example.org/":       false,
		"https://example.com/":         false,
	} {
		u, err := url.Parse(other)
		if err != nil {
			t.Fatal(err)
		}

		if got := redirect.SameOrigin(&url.URL{Scheme: "https", Host: "example.org"}, u); got != same {
			t.Errorf("%s: %v, want %v", other, got, same)
		}
	}
}

// Once a redirect led to another origin, a redirect to the first origin counts as foreign, too.
func TestLeft(t *testing.T) {
	t.Parallel()

	to := func(target string) *http.Request { return httptest.NewRequest(http.MethodGet, target, nil) }
	first := to("https://a.test/")

	for name, test := range map[string]struct {
		next string
		via  []*http.Request
		want bool
	}{
		"same origin":                 {"https://a.test/b", []*http.Request{first}, false},
		"other origin":                {"https://b.test/", []*http.Request{first}, true},
		"other origin, second time":   {"https://b.test/c", []*http.Request{first, to("https://b.test/")}, true},
		"back from another origin":    {"https://a.test/c", []*http.Request{first, to("https://b.test/")}, true},
		"same origin, second time":    {"https://a.test/c", []*http.Request{first, to("https://a.test/b")}, false},
		"without encryption":          {"http://a.test/", []*http.Request{first}, true},
		"another port of that host":   {"https://a.test:8443/", []*http.Request{first}, true},
		"a subdomain, which Go keeps": {"https://x.a.test/", []*http.Request{first}, true},
	} {
		if got := redirect.Left(to(test.next), test.via); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
