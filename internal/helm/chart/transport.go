package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

var errStalled = errors.New("received no data")

// access is how a server is spoken to. It is comparable: what was fetched with one access is not
// given to those who ask with another.
type access struct {
	username, password   string
	passCredentials      bool
	ca, certificate, key string
	insecure, plainHTTP  bool
}

func (from Source) access() access {
	return access{
		username: from.Username, password: from.Password, passCredentials: from.PassCredentials,
		ca: from.CA, certificate: from.ClientCertificate, key: from.ClientKey,
		insecure: from.InsecureSkipTLSVerify, plainHTTP: from.PlainHTTP,
	}
}

func (a access) hasCredentials() bool { return a.username != "" || a.password != "" }

// elsewhere is the source for content on another server. Settings of the connection to the server of from apply
// there only when they are to be passed on.
func (from Source) elsewhere() Source {
	if !from.PassCredentials {
		from.Username, from.Password = "", ""
		from.CA, from.ClientCertificate, from.ClientKey = "", "", ""
		from.InsecureSkipTLSVerify, from.PlainHTTP = false, false
	}
	return from
}

// notPassedOn says of an error of another server why the settings of from were not used.
func (from Source) notPassedOn(err error) error {
	if errors.Is(err, ErrCertificate) && !from.PassCredentials && from.access().hasTLS() {
		return fmt.Errorf("%w (%s)", err, ownTLS)
	}
	return err
}

// ownTLS says for which server settings of TLS are.
const ownTLS = "CA, client certificate and insecure_skip_tls_verify apply only to the server of the chart unless " +
	"pass_credentials is true"

func (a access) hasTLS() bool { return a.ca != "" || a.certificate != "" || a.insecure }

// transport makes connections for one operation; close ends those that are idle. The settings of TLS are used for the
// server of origin alone, unless they are to be passed on; without an origin for those that are asked, and not for
// those to which they redirect.
func (a access) transport(stall time.Duration, origin *url.URL) (
	transport http.RoundTripper, closeIdle func(), err error,
) {
	settings, err := a.tls()
	if err != nil {
		return nil, nil, err
	}
	own, other := newTransport(settings), newTransport(&tls.Config{MinVersion: tls.VersionTLS12})
	split := &byServer{access: a, origin: origin, own: own, other: other}
	return &guard{base: split, stall: stall}, func() { own.CloseIdleConnections(); other.CloseIdleConnections() }, nil
}

func newTransport(settings *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   settings,
		ForceAttemptHTTP2: true,
		// Some servers call a package gzip-encoded tar; undoing that would change its digest.
		DisableCompression: true,
	}
}

// byServer speaks with the settings of one server to that alone.
type byServer struct {
	access
	origin     *url.URL
	own, other http.RoundTripper
}

// RoundTrip sends a request.
func (t *byServer) RoundTrip(req *http.Request) (*http.Response, error) {
	origin := t.origin
	if origin == nil {
		origin = redirect.First(req)
	}
	if t.passCredentials || redirect.SameOrigin(req.URL, origin) {
		return t.own.RoundTrip(req)
	}
	resp, err := t.other.RoundTrip(req)
	if err != nil && t.hasTLS() {
		err = fmt.Errorf("%w (%s is another server than %s: %s)", err, req.URL.Host, origin.Host, ownTLS)
	}
	return resp, err
}

func (a access) tls() (*tls.Config, error) {
	settings := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: a.insecure, // The user's explicit wish.
	}
	if a.ca != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM([]byte(a.ca)) {
			return nil, errors.New("the CA of the repository contains no PEM certificate")
		}
		settings.RootCAs = pool
	}
	if a.certificate != "" || a.key != "" {
		pair, err := tls.X509KeyPair([]byte(a.certificate), []byte(a.key))
		if err != nil {
			return nil, fmt.Errorf("client certificate and key of the repository: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// guard ends requests without an answer for a while.
type guard struct {
	base  http.RoundTripper
	stall time.Duration
}

// RoundTrip sends a request.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(g.stall, func() { cancel(errStalled) })
	end := func() { timer.Stop(); cancel(nil) }
	explain := func(err error) error {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errStalled):
			return fmt.Errorf("%w for %s", errStalled, g.stall)
		case cause != nil:
			return cause
		}
		return err
	}
	resp, err := g.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		err = explain(err)
		end()
		return nil, err
	}
	timer.Reset(g.stall)
	resp.Body = &guardedBody{
		ReadCloser: resp.Body, explain: explain, end: end,
		heard: func() { timer.Reset(g.stall) },
	}
	return resp, nil
}

type guardedBody struct {
	io.ReadCloser
	explain    func(error) error
	heard, end func()
}

func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.heard()
	}
	if err != nil {
		// After we hung up, even a clean end does not count: a server may finish what it was sending, and half of
		// the content would pass for all of it.
		err = b.explain(err)
	}
	return n, err
}

func (b *guardedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// connectionError classifies an error of a connection. at is the requested address.
func connectionError(ctx context.Context, at string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", at, ctx.Err())
	}
	// The URL in it may hold secrets, and is in the text already.
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if withoutTLS(err) {
		return newError(at+": the server does not speak TLS", err, ErrUnreachable, ErrCertificate, ErrWithoutTLS)
	}
	if advice := tlsAdvice(err); advice != "" {
		return newError(at+": "+advice, err, ErrUnreachable, ErrCertificate)
	}
	var dns *net.DNSError
	if errors.Is(err, errStalled) || errors.As(err, &dns) && dns.IsNotFound {
		return newError(at, err, ErrUnreachable)
	}
	return newError(at, err, ErrUnreachable, errTransient)
}

// withoutTLS reports whether a server without TLS answered.
func withoutTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record)
}

// tlsAdvice says what to do about an error of TLS; empty for other errors.
func tlsAdvice(err error) string {
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var operation *net.OpError
	switch {
	case errors.As(err, &unknown):
		return "the certificate of the server is not trusted (set its CA)"
	case errors.As(err, &verification):
		return "the certificate of the server is invalid"
	// crypto/tls reports an alert of the peer as such an operation (conn.go, readRecordOrCCS).
	case errors.As(err, &operation) && operation.Op == "remote error":
		return "the server rejected the TLS handshake (it may require a client certificate)"
	}
	return ""
}

// retry repeats what failed for a reason that may pass.
func (s *Store) retry(ctx context.Context, try func() error) error {
	const tries = 3
	pause := s.pause
	for n := 1; ; n++ {
		err := try()
		if n == tries || !errors.Is(err, errTransient) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w, after %s", ctx.Err(), err.Error())
		}
	}
}

// get reads a URL. Credentials go to the server of origin alone, unless they are to be passed on.
func (s *Store) get(ctx context.Context, a access, at, origin *url.URL, limit int64) ([]byte, error) {
	var body []byte
	err := s.retry(ctx, func() (err error) {
		body, err = s.getOnce(ctx, a, at, origin, limit)
		return err
	})
	return body, err
}

func (s *Store) getOnce(ctx context.Context, a access, at, origin *url.URL, limit int64) ([]byte, error) {
	transport, closeIdle, err := a.transport(s.options.Stall, origin)
	if err != nil {
		return nil, err
	}
	defer closeIdle()
	authenticate := func(req *http.Request) {
		req.Header.Del("Authorization")
		if a.hasCredentials() && (a.passCredentials || redirect.SameOrigin(req.URL, origin)) {
			req.SetBasicAuth(a.username, a.password)
		}
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		authenticate(req)
		return limitRedirects(req, via)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, newError(displayURL(at), nil, ErrNoChart)
	}
	req.Header.Set("User-Agent", userAgent)
	authenticate(req)
	resp, err := client.Do(req)
	if err != nil {
		return nil, connectionError(ctx, displayURL(at), err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(displayURL(at), resp.StatusCode, a.hasCredentials())
	}
	return readAll(ctx, displayURL(at), resp.Body, limit)
}

const userAgent = "terraform-provider-talosop"

// limitRedirects does what http.Client does by default.
func limitRedirects(_ *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than 10 redirects")
	}
	return nil
}

func readAll(ctx context.Context, at string, from io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, connectionError(ctx, at, err)
	}
	if int64(len(body)) > limit {
		return nil, tooLarge(at, limit)
	}
	return body, nil
}

func tooLarge(at string, limit int64) error {
	return newError(fmt.Sprintf("%s is larger than %d bytes", at, limit), nil, ErrTooLarge, ErrDamaged)
}

// statusError classifies the status of an answer.
func statusError(at string, code int, withCredentials bool) error {
	text := fmt.Sprintf("%s: %d %s", at, code, http.StatusText(code))
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		if withCredentials {
			return newError(text+" (the server rejects the given credentials)", nil, ErrCredentials)
		}
		return newError(text+" (the server requires credentials, or hides that the chart does not exist)", nil,
			ErrCredentials)
	case code == http.StatusNotFound, code == http.StatusGone:
		return newError(text, nil, errGone)
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return newError(text, nil, ErrUnreachable, errTransient)
	}
	return newError(text, nil, ErrUnreachable)
}
