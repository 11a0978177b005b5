package kubernetes_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// shows is the certificate of a server.
func shows(s *httptest.Server, cert tls.Certificate) kubestate.ServerCertificate {
	return kubestate.ServerCertificate{URL: s.URL,
		Certificate: kubestate.Certificate{NotBefore: cert.Leaf.NotBefore, NotAfter: cert.Leaf.NotAfter}}
}

// An observation has the certificates that API servers show, even if one has expired and so no request lists the
// nodes. It has no certificate that another cluster's CA signed.
func TestObserve_certificates(t *testing.T) {
	t.Parallel()

	a, other := newAuthority(t), newAuthority(t)
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		t.Error("it was asked")
		w.WriteHeader(http.StatusTeapot)
	}

	serving := func(a authority, ends time.Time) (*httptest.Server, tls.Certificate) {
		cert, err := tls.X509KeyPair(a.issueUntil(t, ends, net.IPv4(127, 0, 0, 1)))
		if err != nil {
			t.Fatal(err)
		}

		return a.serve(t, refuse, cert), cert
	}

	ended, endedCert := serving(a, time.Now().Add(-time.Minute))
	again, againCert := serving(a, time.Now().Add(-2*time.Minute))
	foreign, _ := serving(other, time.Now().Add(time.Hour))

	cert, key := a.issue(t)

	c, err := kubernetes.New(api.Options{
		Endpoint:  ended.URL,
		Fallbacks: []string{again.Listener.Addr().String(), foreign.Listener.Addr().String(), "127.0.0.1:1"},
		CA:        a.pem(), Cert: cert, Key: key, EachServer: true,
		Connect: 20 * time.Second, Attempt: 20 * time.Second, Call: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)

	got := c.Observe(t.Context())
	if got.Reachable || got.Cause == "" {
		t.Errorf("it is reachable: %+v", got)
	}

	want := []kubestate.ServerCertificate{shows(ended, endedCert), shows(again, againCert)}
	if want[0].URL > want[1].URL {
		want[0], want[1] = want[1], want[0]
	}

	if diff := cmp.Diff(want, got.Certificates); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}

	if got := a.client(t, ended.URL).Observe(t.Context()); got.Certificates != nil {
		t.Errorf("without being asked for: %v", got.Certificates)
	}
}
