package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"k8s.io/client-go/rest"
)

// drainTime bounds what a stopping API server waits for requests under way.
const drainTime = 2 * time.Second

// standInServer is the stand-in as the kube-apiserver of one machine.
type standInServer struct {
	*standIn

	version string
	stopOwn func()
	stopped atomic.Bool
}

// serve implements kubeBackend: every version is served alike and answers with itself.
func (s *standIn) serve(l net.Listener, version string) (apiServer, error) {
	server := &standInServer{standIn: s, version: version}
	server.stopOwn = server.also(l)

	return server, nil
}

// also implements apiServer. Stopping ends watches, lets other requests finish, as a
// kube-apiserver does that gets a signal, and cuts what is left.
func (s *standInServer) also(l net.Listener) func() {
	ctx, cancel := context.WithCancel(s.site.ctx)
	srv := &http.Server{
		Handler:           s,
		TLSConfig:         s.tls.Clone(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(logWriter{s.site.logf}, "", 0),
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		if err := srv.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.site.logf("Kubernetes API on %s: %v", l.Addr(), err)
		}
	}()

	return func() {
		cancel()

		drain, cancel := context.WithTimeout(s.site.ctx, drainTime)
		defer cancel()

		// The listener and the connections go; there is nothing to do about an error.
		_ = srv.Shutdown(drain)
		_ = srv.Close()
		<-done
	}
}

// ready implements apiServer.
func (s *standInServer) ready(context.Context) error {
	if !s.healthy() {
		return etcd.ErrTimedOut
	}

	return nil
}

// stop implements apiServer.
func (s *standInServer) stop() {
	s.stopped.Store(true)
	s.stopOwn()
}

// config implements apiServer: requests go to the handler without a network.
func (s *standInServer) config() *rest.Config {
	return &rest.Config{Host: "http://kubernetes", QPS: -1, Transport: inProcess{s}}
}

// ServeHTTP authenticates and authorizes as far as the stand-in does, and dispatches.
func (s *standInServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// serveObjects is what a request that may do all gets.
func (s *standInServer) serveObjects(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.serveDiscovery(w, r):
	case !s.healthy():
		writeStatus(w, http.StatusInternalServerError, "InternalError", etcd.ErrTimedOut.Error())
	default:
		s.serveResource(w, r)
	}
}

// inProcess is the way of the simulator's own kubelets and controllers to a stand-in.
type inProcess struct{ server *standInServer }

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
		StatusCode: answer.code, Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()),
		Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Request: r,
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
