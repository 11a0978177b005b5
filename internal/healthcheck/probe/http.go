package probe

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

// mostBody is how much of an answer is read.
const mostBody = 1 << 20

// Request is nil when a URL returns the expected response.
func Request(ctx context.Context, check healthcheck.HTTP) error {
	client, err := clientOf(check)
	if err != nil {
		return err
	}

	defer client.CloseIdleConnections()

	method := cmp.Or(check.Method, http.MethodGet)

	request, err := http.NewRequestWithContext(ctx, method, check.URL, strings.NewReader(check.Body))
	if err != nil {
		return withoutURL(err)
	}

	for name, value := range check.Headers {
		request.Header.Set(name, value)
	}

	if host := check.Headers["Host"]; host != "" {
		request.Host = host
	}

	answer, err := client.Do(request)
	if err != nil {
		return withoutURL(err)
	}

	body, err := io.ReadAll(io.LimitReader(answer.Body, mostBody))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return withoutURL(err)
	}

	if want := expected(method, check.Status, answer.StatusCode); answer.StatusCode != want {
		return fmt.Errorf("the response is %s, expected %d%s", answer.Status, want, elsewhere(request, answer, check))
	}

	if !strings.Contains(string(body), check.Contains) {
		return fmt.Errorf("the response does not contain %q%s", check.Contains, elsewhere(request, answer, check))
	}

	return nil
}

// expected is the status that a response must have. A method that changes something returns any 2xx.
func expected(method string, wanted, got int) int {
	if wanted == 0 && method != http.MethodGet && got/100 == 2 {
		return got
	}

	return cmp.Or(wanted, http.StatusOK)
}

// clientOf trusts the CAs of the check, and keeps no connection.
func clientOf(check healthcheck.HTTP) (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}

	if check.CA != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(check.CA)) {
			return nil, errors.New("ca contains no PEM certificate")
		}

		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}

	return &http.Client{Transport: transport, CheckRedirect: withoutHeaders}, nil
}

// mostRedirects is what net/http follows by default.
const mostRedirects = 10

// withoutHeaders follows a redirect to another origin without the headers of the check, which may be secret. It removes
// Referer, too: net/http puts the URL with its query there. A body is not sent there at all.
func withoutHeaders(next *http.Request, via []*http.Request) error {
	if len(via) >= mostRedirects {
		return fmt.Errorf("more than %d redirects", mostRedirects)
	}

	if redirect.Left(next, via) {
		if next.ContentLength > 0 {
			return errors.New("the server redirects the request with its body to another server")
		}

		next.Header = http.Header{}
	}

	return nil
}

// elsewhere says that the answer comes from another origin than the URL of a check; empty where it does not. It leaves
// out the path and the query, which may be secret.
func elsewhere(asked *http.Request, answer *http.Response, check healthcheck.HTTP) string {
	from := answer.Request.URL

	switch {
	case redirect.SameOrigin(asked.URL, from):
		return ""
	case len(check.Headers) == 0:
		return fmt.Sprintf(" (redirected to %s://%s)", from.Scheme, from.Host)
	default:
		return fmt.Sprintf(" (redirected to %s://%s, without the headers of the check)", from.Scheme, from.Host)
	}
}

// withoutURL is an error without the URL, which may have a password in it.
func withoutURL(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}

	return err
}
