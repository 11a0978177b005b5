package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// transportFor connects to a registry as machines are told to: with its certificates, and through the proxy of the
// environment that Terraform runs in.
func transportFor(to *url.URL, registries machineconfig.Registries) (*http.Transport, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport of HTTP has been replaced")
	}

	secured := base.Clone()

	settings, ok := registries.TLS[to.Host]
	if !ok {
		return secured, nil
	}

	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: settings.InsecureSkipVerify}

	if settings.CA != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the certificates of the system: %w", err)
		}

		if !pool.AppendCertsFromPEM([]byte(settings.CA)) {
			return nil, errors.New("its CA is no certificate")
		}

		config.RootCAs = pool
	}

	if settings.ClientCertificate != "" {
		// The error of the library does not quote the key.
		certificate, err := tls.X509KeyPair([]byte(settings.ClientCertificate), []byte(settings.ClientKey))
		if err != nil {
			return nil, fmt.Errorf("read its client certificate: %w", err)
		}

		config.Certificates = []tls.Certificate{certificate}
	}

	secured.TLSClientConfig = config

	return secured, nil
}

// wire brings the requests of go-containerregistry, which knows only <host>/v2/, to an endpoint: with the scheme and path
// of the endpoint, where the library would go over to plain HTTP for hosts nearby, and with the registry that a mirror
// stands for, as containerd asks it. Requests to others (for a token, or after a redirect) go as they are.
type wire struct {
	endpoint  endpoint
	reference name.Reference
	inner     http.RoundTripper
}

const ping = "/v2/"

// RoundTrip sends a request.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	manifest := ping + w.reference.Context().RepositoryStr() + "/manifests/" + w.reference.Identifier()

	pings := request.URL.Path == ping
	if request.URL.Host != w.endpoint.url.Host || request.Response != nil || !pings && request.URL.Path != manifest {
		return w.inner.RoundTrip(request)
	}

	request = request.Clone(request.Context())
	request.URL.Scheme = w.endpoint.url.Scheme

	// Nothing but images can be expected below a path of the user's own: the question itself shows whether the registry
	// wants credentials, as it does for containerd.
	asks := pings && w.endpoint.overridden
	if asks {
		request.Method = http.MethodHead
		request.URL.Path = manifest
	}

	request.URL.Path = w.endpoint.url.Path + "/" + strings.TrimPrefix(request.URL.Path, ping)
	request.URL.RawPath = ""

	// containerd 2.2, core/remotes/docker, isProxy and addNamespace.
	if w.endpoint.namespace != "" && (!pings || asks) {
		request.URL.RawQuery = url.Values{"ns": {w.endpoint.namespace}}.Encode()
	}

	response, err := w.inner.RoundTrip(request)
	if err == nil && asks && (response.StatusCode < http.StatusBadRequest || response.StatusCode == http.StatusNotFound) {
		response.StatusCode, response.Status = http.StatusOK, "200 OK"
	}

	return response, err
}
