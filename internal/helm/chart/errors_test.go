package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTLS_serverCertificate(t *testing.T) {
	s, oci := serve(t), serveRegistry(t)
	content := packed(t, simple("web", "1.0.0"))
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
	oci.push(t, "web:1.0.0", content)
	for _, from := range []Source{s.of("web", "1.0.0"), oci.of("web", "1.0.0")} {
		store := newStore(t, Options{})
		from.CA = ""
		_, err := store.Resolve(t.Context(), from)
		if !errors.Is(err, ErrCertificate) || !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrCredentials) {
			t.Error(err)
		}
		texts(t, err, "127.0.0.1", "CA", "unknown authority")
		from.InsecureSkipTLSVerify = true
		p, err := store.Fetch(t.Context(), from)
		installable(t, p, err, "web", "1.0.0")
		from.InsecureSkipTLSVerify, from.CA = false, "no certificate"
		if _, err = store.Resolve(t.Context(), from); err == nil || errors.Is(err, ErrUnreachable) {
			t.Errorf("a CA that is none: %v", err)
		}
	}
}

func TestTLS_otherServerName(t *testing.T) {
	s := serve(t)
	from := s.of("web", "")
	from.Repository = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	_, err := newStore(t, Options{}).Resolve(t.Context(), from)
	if !errors.Is(err, ErrCertificate) {
		t.Error(err)
	}
	texts(t, err, "localhost", "certificate")
}

func TestTLS_clientCertificate(t *testing.T) {
	s := serve(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	})
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	store, from := newStore(t, Options{}), s.of("web", "")
	_, err := store.Resolve(t.Context(), from)
	if !errors.Is(err, ErrCertificate) {
		t.Error(err)
	}
	texts(t, err, "client certificate")
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	from.ClientCertificate = s.CA
	if _, err = store.Resolve(t.Context(), from); err == nil || errors.Is(err, ErrUnreachable) {
		t.Errorf("a certificate without its key: %v", err)
	}
	from.ClientKey = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	p, err := store.Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.0.0")
}

func TestTransport_noAnswer(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	store := newStore(t, Options{})
	for _, from := range []Source{
		{Repository: "https://" + host, Chart: "web"},
		{Repository: "oci://" + host + "/charts", Chart: "web", Version: "1.0.0"},
		{Repository: "oci://" + host + "/charts", Chart: "web"},
		{Chart: "https://" + host + "/web.tgz"},
		{Repository: "https://nowhere.invalid", Chart: "web"},
	} {
		_, err := store.Resolve(t.Context(), from)
		if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrCertificate) || errors.Is(err, ErrNoChart) {
			t.Errorf("%+v: %v", from, err)
		}
		if !strings.Contains(from.Repository, "invalid") {
			texts(t, err, host, "refused")
		}
	}
}

// A server that stops to talk, before its answer or within, is not waited for.
func TestTransport_stalledServer(t *testing.T) {
	s := serve(t)
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	silent := map[string]func(http.ResponseWriter){
		"before": func(http.ResponseWriter) {},
		"within": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte("apiVersion: v1\n"))
			_ = http.NewResponseController(w).Flush()
		},
	}
	for when, begin := range silent {
		for _, path := range []string{"/index.yaml", "/web-1.0.0.tgz"} {
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != path {
					return false
				}
				begin(w)
				select {
				case <-release:
				case <-r.Context().Done():
				}
				return true
			})
			store := newStore(t, Options{})
			if path != "/index.yaml" {
				// However slow this machine is, what is not to stall does not.
				if _, err := store.Resolve(t.Context(), s.of("web", "")); err != nil {
					t.Fatal(err)
				}
			}
			store.options.Stall = 50 * time.Millisecond
			_, err := store.Fetch(t.Context(), s.of("web", ""))
			if !errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) {
				t.Errorf("%s %s: %v", when, path, err)
			}
			texts(t, err, path, "received no data for 50ms")
		}
	}
}

// A slow server that keeps sending is waited for.
func TestTransport_slowServer(t *testing.T) {
	s := serve(t)
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	const stall = 3 * time.Second // longer than a busy machine sleeps
	tick := time.NewTicker(stall / 10)
	t.Cleanup(tick.Stop)
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/index.yaml" {
			return false
		}
		content := s.files[r.URL.Path]
		for len(content) > 0 {
			n := min(len(content), len(s.files[r.URL.Path])/12+1)
			<-tick.C
			if _, err := w.Write(content[:n]); err != nil {
				return true
			}
			_ = http.NewResponseController(w).Flush()
			content = content[n:]
		}
		return true
	})
	p, err := newStore(t, Options{Stall: stall}).Fetch(t.Context(), s.of("web", ""))
	installable(t, p, err, "web", "1.0.0")
}

// Canceling ends a call and its request at once.
func TestStore_canceled(t *testing.T) {
	s, oci := serve(t), serveRegistry(t)
	arrived, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	hang := func(_ http.ResponseWriter, r *http.Request) bool {
		arrived <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
		return true
	}
	s.answer(hang)
	oci.answer(hang)
	for _, from := range []Source{s.of("web", ""), {Chart: s.URL + "/web.tgz", CA: s.CA}, oci.of("web", "1.0.0"),
		oci.of("web", "")} {
		store := newStore(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { _, err := store.Fetch(ctx, from); result <- err }()
		<-arrived
		began := time.Now()
		cancel()
		err := <-result
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
			t.Error(err)
		}
		<-ended
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
	}
}

// A transient failure is retried and not reported.
func TestTransport_transientFailures(t *testing.T) {
	s, oci := serve(t), serveRegistry(t)
	content := packed(t, simple("web", "1.0.0"))
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
	oci.push(t, "web:1.0.0", content)
	authorize := oci.before
	for status, passes := range map[int]bool{
		http.StatusServiceUnavailable: true, http.StatusTooManyRequests: true, http.StatusBadGateway: true,
		http.StatusTeapot: false,
	} {
		for from, of := range map[*server]Source{s: s.of("web", "1.0.0"), oci.server: oci.of("web", "1.0.0")} {
			left := 1
			from.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if left > 0 {
					left--
					w.WriteHeader(status)
					return true
				}
				return from == oci.server && authorize(w, r)
			})
			p, err := newStore(t, Options{}).Fetch(t.Context(), of)
			if passes {
				installable(t, p, err, "web", "1.0.0")
			} else if !errors.Is(err, ErrUnreachable) {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
	tries := 0
	s.answer(func(w http.ResponseWriter, _ *http.Request) bool {
		tries++
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	_, err := newStore(t, Options{}).Fetch(t.Context(), s.of("web", ""))
	if !errors.Is(err, ErrUnreachable) || tries != 3 {
		t.Errorf("%d tries: %v", tries, err)
	}
	texts(t, err, "503")
}

func TestTransport_endlessRedirects(t *testing.T) {
	s, oci := serve(t), serveRegistry(t)
	around := func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
		return true
	}
	s.answer(around)
	oci.answer(around)
	for _, from := range []Source{s.of("web", ""), oci.of("web", "1.0.0")} {
		_, err := newStore(t, Options{}).Resolve(t.Context(), from)
		if !errors.Is(err, ErrUnreachable) {
			t.Error(err)
		}
		texts(t, err, "redirects")
	}
}

// A server that sends the password back does not make it public.
func TestErrors_passwordInAnswer(t *testing.T) {
	s := serveRegistry(t)
	s.answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Location", "https://"+testUser+":"+testPassword+"@"+s.host()+"/elsewhere\x7f")
		w.WriteHeader(http.StatusFound)
		return true
	})
	store := newStore(t, Options{})
	from := s.of("web", "1.0.0")
	_, err := store.Resolve(t.Context(), from)
	texts(t, err, s.host())
	from.Repository = s.URL
	_, err = store.Resolve(t.Context(), from)
	texts(t, err, s.host())
	plain := errors.New("you sent " + testPassword)
	if got := redact(plain, from); strings.Contains(got.Error(), testPassword) || !errors.Is(got, plain) {
		t.Error(got)
	}
}
