package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

// drainTime bounds how long a stopping API server waits for running requests.
const drainTime = 2 * time.Second

// Serve implements Backend: every version is served alike and answers with itself.
func (s *standIn) Serve(l net.Listener, version string, cfg config.Provider) (Server, error) {
	cluster := cfg.K8sAPIServerCAConfig()

	ca, err := certs.LoadAuthority(cluster.IssuingCA())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load Kubernetes CA: %w", err), l.Close())
	}

	host, _, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find local address: %w", err), l.Close())
	}

	server := &StandInServer{standIn: s, version: version, host: host, clients: x509.NewCertPool()}
	server.clients.AddCert(ca.Cert)

	for _, accepted := range cluster.AcceptedCAs() {
		server.clients.AppendCertsFromPEM(accepted.Crt)
	}

	server.tls = &tls.Config{
		MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert,
		NextProtos: []string{"h2", "http/1.1"},
		// Addresses join and leave, so each gets its own certificate on request.
		GetCertificate: certificates(s.site, ca, append(cfg.K8sAPIServerConfig().CertSANs(),
			cfg.K8sClusterConfig().ClusterEndpoint().Hostname())),
	}
	server.stopOwn = server.Also(l)

	return server, nil
}

// Also implements Server. Stopping ends watches, lets other requests finish, as a
// kube-apiserver does that gets a signal, and cuts what is left.
func (s *StandInServer) Also(l net.Listener) func() {
	ctx, cancel := context.WithCancel(s.site.Ctx)
	srv := &http.Server{
		Handler:           s,
		TLSConfig:         s.tls.Clone(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(logWriter{s.site.Logf}, "", 0),
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		if err := srv.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.site.Logf("Kubernetes API on %s: %v", l.Addr(), err)
		}
	}()

	return func() {
		cancel()

		drain, cancel := context.WithTimeout(s.site.Ctx, drainTime)
		defer cancel()

		// The listener and the connections go; there is nothing to do about an error.
		_ = srv.Shutdown(drain)
		_ = srv.Close()
		<-done
	}
}

// unready are the readiness checks that fail.
func (s *StandInServer) unready() []string {
	failed := s.site.Machines.UnreadyAt(s.host)
	if !s.healthy() {
		failed = append(failed, "etcd")
	}

	return failed
}

// Ready implements Server.
func (s *StandInServer) Ready(context.Context) error {
	if !s.healthy() {
		return etcd.ErrTimedOut
	}

	return nil
}

// Stop implements Server.
func (s *StandInServer) Stop() {
	s.stopped.Store(true)
	s.stopOwn()
}

// Config implements Server: requests go to the handler without a network.
func (s *StandInServer) Config() *rest.Config {
	return &rest.Config{Host: "http://kubernetes", QPS: -1, Transport: inProcess{s}}
}

// ServeHTTP authenticates and authorizes as far as the stand-in does, and dispatches.
func (s *StandInServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, groups, ok := s.authenticate(r)

	switch {
	case !ok:
		// Talos switches anonymous requests off, so this is the answer even to /livez.
		writeStatus(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
	case slices.Contains([]string{"/livez", "/healthz", "/readyz"}, r.URL.Path):
		s.serveHealth(w, r.URL.Path)
	case r.URL.Path == "/version":
		s.serveVersion(w)
	case !slices.Contains(groups, mastersGroup):
		writeStatus(w, http.StatusForbidden, "Forbidden",
			fmt.Sprintf("%s is forbidden: User %q cannot access the resource", strings.TrimPrefix(r.URL.Path, "/"), user))
	default:
		s.serveObjects(w, r)
	}
}

// serveObjects handles an authorized request.
func (s *StandInServer) serveObjects(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.serveDiscovery(w, r):
	case !s.healthy():
		writeStatus(w, http.StatusInternalServerError, "InternalError", etcd.ErrTimedOut.Error())
	default:
		s.serveResource(w, r)
	}
}

// inProcess is the way of the simulator's own kubelets and controllers to a stand-in.
type inProcess struct{ server *StandInServer }

// RoundTrip implements http.RoundTripper; answers are complete, so nothing can be watched.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.server.stopped.Load() {
		return nil, fmt.Errorf("dial kube-apiserver: %w", syscall.ECONNREFUSED)
	}

	if r.Body == nil {
		r.Body = http.NoBody
	}

	answer := &recordedAnswer{header: http.Header{}, code: http.StatusOK}
	p.server.serveObjects(answer, r)

	return &http.Response{
		StatusCode: answer.code, Header: answer.header, Body: io.NopCloser(&answer.body),
		ContentLength: int64(answer.body.Len()),
		Proto:         r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Request: r,
	}, nil
}

// recordedAnswer is an http.ResponseWriter.
type recordedAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *recordedAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *recordedAnswer) WriteHeader(code int) { a.code = code }

// Write implements http.ResponseWriter.
func (a *recordedAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }
