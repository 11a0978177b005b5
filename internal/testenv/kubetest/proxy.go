package kubetest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// Proxy is a route to the Kubernetes API of a cluster that counts requests and lets some of them fail
// ([Proxy.Fail] and what is beside it). It can also act as if its client had died. Every client of the proxy is an
// administrator.
type Proxy struct {
	gate

	// URL of the API through the proxy. Its certificate is of the cluster's CA, so that it can be the
	// endpoint of a handle.
	URL string

	cluster    *Cluster
	server     *httptest.Server
	kubeconfig string

	dying sync.WaitGroup
}

// Proxy opens a proxy, until the test ends. Each counts and fails for itself.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()

	ca, err := c.authority()
	if err != nil {
		t.Fatal(err)
	}

	transport, err := transportTo(c.admin)
	if err != nil {
		t.Fatal(err)
	}

	target, err := url.Parse(c.endpoint)
	if err != nil {
		t.Fatal(err)
	}

	p := &Proxy{cluster: c}
	p.next = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	// Clients may use the proxy in place of any server of the cluster, see Dial.
	also := []string{target.Hostname()}
	for _, m := range c.sim.Machines() {
		also = append(also, m.Address().String())
	}

	p.server = p.open(t, ca, true, also...)
	p.URL = p.server.URL
	t.Cleanup(p.dying.Wait)

	p.writeKubeconfig(t)

	return p
}

// transport asks for what becomes another protocol, such as a port-forward, as HTTP/1.1, which alone can.
type transport struct{ usual, upgrades http.RoundTripper }

func transportTo(config *rest.Config) (transport, error) {
	usual, err := rest.TransportFor(config)
	if err != nil {
		return transport{}, err
	}

	first := rest.CopyConfig(config)
	first.NextProtos = []string{"http/1.1"}

	upgrades, err := rest.TransportFor(first)

	return transport{usual, upgrades}, err
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return t.upgrades.RoundTrip(r)
	}

	return t.usual.RoundTrip(r)
}

func (p *Proxy) writeKubeconfig(t testing.TB) {
	t.Helper()

	admin, err := p.cluster.bundle.KubernetesClient("admin", []string{"system:masters"}, lifetime)
	if err != nil {
		t.Fatal(err)
	}

	content, err := admin.Kubeconfig("proxy", p.URL, "admin")
	if err != nil {
		t.Fatal(err)
	}

	p.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")

	if err := os.WriteFile(p.kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Kubeconfig is the path of an administrator's kubeconfig that goes through the proxy.
func (p *Proxy) Kubeconfig() string { return p.kubeconfig }

// Dial connects to the proxy, whatever the address: talosop's own client asks control planes
// that it knows of when the endpoint does not answer.
func (p *Proxy) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, p.server.Listener.Addr().String())
}

// Client is talosop's own, with no other way to the cluster than the proxy.
func (p *Proxy) Client(t testing.TB, o api.Options) *kubernetes.Client {
	t.Helper()

	o.Endpoint, o.Dial = p.URL, p.Dial

	return p.cluster.Client(t, o)
}

// Die hides all later requests from the cluster, as if the client were killed at the n-th matching request from
// now on; nil matches all. With done, that request still gets through, without its answer; otherwise it does not.
// All connections end. The channel is closed then, for a test that ends the operation: the client does not know
// that it is dead. Fail(nil) ends this state.
func (p *Proxy) Die(n int, fits func(Call) bool, done bool) <-chan struct{} {
	dead := make(chan struct{})
	count, struck := 0, false

	die := func() {
		close(dead)
		p.dying.Go(p.server.CloseClientConnections)
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.lost = die
	p.fault = func(c Call) Fault {
		switch {
		case struck:
			return Cut
		case fits != nil && !fits(c):
			return Passed
		}

		if count++; count < n {
			return Passed
		}

		struck = true

		if done {
			return Lost // and dies then
		}

		die()

		return Cut
	}

	return dead
}
