// Package redirect keeps secrets of a request from the servers that redirects lead to. net/http removes Authorization
// and cookies when the host name changes, and keeps them for another port, for http instead of https, and for
// subdomains; it keeps every other header everywhere (Go 1.26, Client.makeHeadersCopier).
package redirect

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	case u.Scheme == "http":
		return "80"
	default:
		return ""
	}
}

// First is the URL that redirects began with.
func First(request *http.Request) *url.URL {
	for request.Response != nil && request.Response.Request != nil {
		request = request.Response.Request
	}

	return request.URL
}

// Refusing is a transport that answers a redirect to another origin with an error. It is for a transport that adds
// credentials to everything that goes through it.
type Refusing struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t Refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if first := First(r); !SameOrigin(first, r.URL) {
		if r.Body != nil {
			_ = r.Body.Close() // a transport closes it (http.RoundTripper)
		}

		return nil, fmt.Errorf("%s://%s redirects to %s://%s, and credentials are not sent to another server",
			first.Scheme, first.Host, r.URL.Scheme, r.URL.Host)
	}

	return t.RoundTripper.RoundTrip(r)
}

// Left reports whether this redirect, or an earlier one, leads to another origin than that of the first request. A
// foreign server also chooses the URL of a redirect to the first origin.
//
// It is for http.Client.CheckRedirect: net/http copies the headers of the first request to every further one, so a
// header removed for one redirect is back at the next.
func Left(next *http.Request, via []*http.Request) bool {
	for _, earlier := range via[1:] {
		if !SameOrigin(via[0].URL, earlier.URL) {
			return true
		}
	}

	return !SameOrigin(via[0].URL, next.URL)
}
