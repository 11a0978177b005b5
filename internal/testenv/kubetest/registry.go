package kubetest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v3/pkg/registry"
)

// Registry is an OCI registry with TLS that holds charts. [Registry.Fail] and the related methods make requests
// fail and return them.
type Registry struct {
	gate

	// Host is host:port of the registry.
	Host string
	// URL is where charts are below, such as oci://127.0.0.1:1234/charts.
	URL string
	// CA that signed the server's certificate, in PEM, and a file with it.
	CA, CAFile string

	client *registry.Client
}

// NewRegistry starts an empty registry, until the test ends.
func NewRegistry(t testing.TB, o ServerOptions) *Registry {
	t.Helper()

	r := &Registry{}
	r.next = guarded(o.Username, o.Password, ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0))))

	ca := newAuthority(t, "chart registry")
	r.CA, r.CAFile = ca.pem(), writeCA(t, ca)
	r.Host = strings.TrimPrefix(r.open(t, ca, false).URL, "https://")
	r.URL = "oci://" + r.Host + "/charts"

	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ca.roots()}}
	t.Cleanup(transport.CloseIdleConnections)

	options := []registry.ClientOption{registry.ClientOptHTTPClient(&http.Client{Transport: transport}),
		registry.ClientOptWriter(io.Discard)}
	if o.Username != "" {
		options = append(options, registry.ClientOptBasicAuth(o.Username, o.Password))
	}

	var err error
	if r.client, err = registry.NewClient(options...); err != nil {
		t.Fatal(err)
	}

	return r
}

// Push pushes packages, with their versions as tags, and returns the digest of the last one's
// manifest. The requests of that are not counted.
func (r *Registry) Push(t testing.TB, packages ...[]byte) (manifest string) {
	t.Helper()

	before := r.Seen(nil)

	for _, content := range packages {
		name, version := identify(t, content)

		// A tag may have no plus sign, which Helm writes as an underscore (Helm 3.21, registry/reference.go).
		ref := fmt.Sprintf("%s/charts/%s:%s", r.Host, name, strings.ReplaceAll(version, "+", "_"))

		result, err := r.client.Push(content, ref, registry.PushOptStrictMode(false),
			registry.PushOptCreationTime("2026-01-01T00:00:00Z"))
		if err != nil {
			t.Fatal(err)
		}

		manifest = result.Manifest.Digest
	}

	r.recall(before)

	return manifest
}
