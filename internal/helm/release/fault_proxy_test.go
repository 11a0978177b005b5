package release_test

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// fault is the result of a request.
type fault int

const (
	pass fault = iota
	// lose the answer: the request was carried out.
	lose
	// cut the connection before that.
	cut
	// forbid it.
	forbid
)

// faultProxy is a proxy of the API of a cluster that counts requests, and fails some.
type faultProxy struct {
	client *kubernetes.Client
	// fault decides about each request, the n-th from 1 on; set before the first one.
	fault func(call string, n int) fault

	// lost counts the requests whose answers are lost, until they are done; done reports that where it is set.
	lost sync.WaitGroup
	done func()

	mu    sync.Mutex
	calls []string
}

func newFaultProxy(t *testing.T, to *kubetest.Cluster) *faultProxy {
	t.Helper()

	config := to.Config()

	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}

	target, err := url.Parse(to.Endpoint())
	if err != nil {
		t.Fatal(err)
	}

	d := &faultProxy{fault: func(string, int) fault { return pass }}
	through := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch d.pass(r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery) {
		case lose:
			defer d.lost.Done()
			// The client may be gone before the request is done.
			through.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))

			if d.done != nil {
				d.done()
			}

			panic(http.ErrAbortHandler)
		case cut:
			panic(http.ErrAbortHandler)
		case forbid:
			refuse(w)
		case pass:
			through.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	// The certificate is that of the administrator; the proxy does not ask for it.
	d.client, err = kubernetes.New(
		api.Options{Endpoint: server.URL, CA: ca, Cert: config.CertData, Key: config.KeyData})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(d.client.Close)

	return d
}

func (d *faultProxy) pass(call string) fault {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.calls = append(d.calls, call)
	becomes := d.fault(call, len(d.calls))

	if becomes == lose {
		d.lost.Add(1)
	}

	return becomes
}

func (d *faultProxy) count() int { return len(d.all()) }

// all requests until now.
func (d *faultProxy) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()

	return slices.Clone(d.calls)
}
