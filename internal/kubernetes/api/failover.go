package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

const (
	// longAttempt bounds the silence of one server in a request of a library. An admission webhook has 10 s by
	// default (Kubernetes 1.36, ValidatingWebhook.timeoutSeconds), and another server has to be asked within the
	// 30 s that go-kubernetes 0.2.41 gives a dry run.
	longAttempt = 20 * time.Second
	// longestAttempt is the limit for writes that are not urgent: the API server itself ends a request after 60 s
	// (Kubernetes 1.36, --request-timeout), and webhooks may take 30 s each.
	longestAttempt = 65 * time.Second
)

// ErrNoAnswer is a request that no API server answered: nothing is known of its object.
var ErrNoAnswer = errors.New("the Kubernetes API does not respond")

// Config is a configuration for libraries with their own requests to the API, such as Helm. Each request goes to
// the servers of the client in turn until one answers, whatever context the library gives it. It ends when ctx
// ends: the error then is its cause. Answers are passed on unchanged, refusals too. A request that no server
// answers gives an error that is [ErrNoAnswer], also below the library's own error. A request that creates
// something is not sent to another server once it may have reached one. Bodies of any size pass, as long as they
// make progress; watches and followed logs have no such bound.
//
// The number of requests is not limited, warnings of the API are dropped, and it contains no credentials: they are
// behind its transport. It does no I/O itself.
func (c *Client) Config(ctx context.Context) *rest.Config { return c.Faithful(ctx).Config() }

// Failover is the http.RoundTripper of all requests: each goes to the servers of the client in turn
// until one gives an answer.
//
// What no server answers, and what the API cannot answer just now, becomes an error that
// says nothing but its text. go-kubernetes would repeat these by itself, for minutes, and
// print each to the standard error of the process (go-retry 0.3.3, WithErrorLogging); here
// the caller repeats the whole, see [Failover.NoAnswer].
type Failover struct {
	servers func() []*Server
	client  *Client
	// ctx ends what a library does in the background.
	ctx context.Context //nolint:containedctx // fluxcd/pkg/ssa 0.77 waits for definitions without the caller's context (WaitForSet)
	// attempt bounds the silence of one server, and total, unless zero, the request as a whole.
	attempt, total time.Duration
	// conflicts is for callers that handle an object that another client changed in between.
	conflicts bool
	// pinned is for requests to one server, even if another one answers better.
	pinned bool
	// faithful is for libraries that make something of a refusal: when no server has anything
	// better, what the last one said is passed on as it is, also that it cannot answer just now.
	faithful bool

	mu   sync.Mutex
	last error
}

// Library is a transport for a library that knows one server only, until ctx ends.
func (c *Client) Library(ctx context.Context) *Failover {
	return &Failover{client: c, servers: c.order, ctx: ctx, attempt: longAttempt}
}

// Faithful is that for a library that makes something of refusals.
func (c *Client) Faithful(ctx context.Context) *Failover {
	return &Failover{client: c, servers: c.order, ctx: ctx, attempt: longAttempt, conflicts: true, faithful: true}
}

// typed is the transport of the client's own requests.
func (c *Client) typed(servers func() []*Server) *Failover {
	return &Failover{
		client: c, servers: servers, ctx: context.Background(), attempt: c.Options.Attempt, total: c.Options.Call,
		conflicts: true,
	}
}

// Config is the configuration of a library that uses the transport.
func (f *Failover) Config() *rest.Config {
	return &rest.Config{
		Host: f.client.given[0].URL, Transport: f, QPS: -1, WarningHandler: rest.NoWarnings{}, UserAgent: userAgent,
	}
}

// NoAnswer is why a request got no answer the last time, nil when all of them did.
func (f *Failover) NoAnswer() error {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.last
}

// Ended reports whether the time of the library is over.
func (f *Failover) Ended() bool { return f.ctx.Err() != nil }

// Answered marks an error without an answer as [ErrNoAnswer].
func (f *Failover) Answered(err error) error {
	var refusal apierrors.APIStatus

	unable := errors.As(err, &refusal) && CannotAnswer(refusal)
	if err != nil && (unable || f.NoAnswer() != nil || f.Ended()) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, WithoutURL(err))
	}

	return err
}

// CannotAnswer reports whether the API says that it cannot say anything just now.
func CannotAnswer(status apierrors.APIStatus) bool {
	switch status.Status().Code {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// noAnswerError is why no server answered a request. It is [ErrNoAnswer] and, where a context
// ended it, the cause of that; what it is made of shows in its text only.
type noAnswerError struct {
	text  string
	ended error
	// unreachable is that there was no connection to any server.
	unreachable bool
}

func (e *noAnswerError) Error() string { return e.text }
func (e *noAnswerError) Is(target error) bool {
	return target == ErrNoAnswer || target == ErrUnreachable && e.unreachable
}
func (e *noAnswerError) Unwrap() error { return e.ended }

// Ended is the error of a request that a context ended, nil for one that lives.
func Ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return &noAnswerError{text: OneLine(cause), ended: cause}
	}

	return nil
}

// RoundTrip implements http.RoundTripper.
func (f *Failover) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := f.client.Options.Limit.refuse(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // unused
		}

		return nil, err
	}

	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}

	ctx, end := f.bind(r)

	response, err := f.inTurn(r.WithContext(ctx), body)
	if response == nil || !endless(r) {
		end()
	} else {
		response.Body = &stream{response.Body, end}
	}

	if response != nil {
		response.Request = r
	}

	return response, err
}

// bind returns a context that ends with that of a request and with that of the transport, each
// with its cause.
func (f *Failover) bind(r *http.Request) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	release := context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })

	bounded := func() {}
	if f.total > 0 && !endless(r) {
		ctx, bounded = context.WithTimeoutCause(ctx, f.total, fmt.Errorf("no response within %s", f.total))
	}

	return ctx, func() {
		release()
		bounded()
		cancel(nil)
	}
}

// inTurn makes a request to the servers in turn.
func (f *Failover) inTurn(r *http.Request, body []byte) (refusal *http.Response, err error) {
	var reasons []error

	unreachable := true

	for _, s := range f.servers() {
		if r.Context().Err() != nil {
			if len(reasons) == 0 {
				return nil, Ended(r.Context())
			}

			break
		}

		response, answer, err := s.exchange(r, body, f.bound(r))
		if err == nil {
			refusal = response
			err = f.tryAgain(r, response.StatusCode, answer)
		}

		f.client.noteEndpoint(r, s, response, answer, err)

		if err == nil {
			f.prefer(s)

			if !f.faithful {
				// client-go would sleep through it and repeat, up to ten times, and hide the answer meanwhile.
				// An eviction that a PodDisruptionBudget refuses is such an answer.
				response.Header.Del("Retry-After")
			}

			return response, nil
		}

		unreachable = unreachable && errors.Is(err, ErrUnreachable)
		reasons = append(reasons, fmt.Errorf("%s: %w", s.URL, err))

		// What is left of a connection that failed must not be used again.
		s.http.CloseIdleConnections()
		f.turnFrom(s)

		// What the server may have created would be refused by the next one.
		if r.Method == http.MethodPost && !errors.Is(err, ErrUnreachable) {
			break
		}
	}

	if f.faithful && refusal != nil {
		soon(refusal.Header)

		return refusal, nil
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	f.last = &noAnswerError{text: OneLine(errors.Join(reasons...)), ended: context.Cause(r.Context()),
		unreachable: unreachable}

	return nil, f.last
}

func (f *Failover) prefer(s *Server) {
	if !f.pinned {
		f.client.prefer(s)
	}
}

func (f *Failover) turnFrom(s *Server) {
	if !f.pinned {
		f.client.turnFrom(s)
	}
}

// soon takes out when the server would like to be asked again, unless it is in a moment: client-go
// repeats ten times, and sleeps in between whatever becomes of our context.
func soon(header http.Header) {
	const moment = 2 // seconds

	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err != nil || seconds > moment {
		header.Del("Retry-After")
	}
}

// bound is how long one server may be silent.
func (f *Failover) bound(r *http.Request) time.Duration {
	if f.faithful && r.Method != http.MethodGet {
		return longestAttempt
	}

	return f.attempt
}

// bodyOf reads what a request sends, to send it more than once.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}

	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}

	return body, nil
}

// endless reports whether the answer to a request is a stream without an end: a watch, or a log that is followed.
func endless(r *http.Request) bool {
	query := r.URL.Query()

	return query.Get("watch") == "true" || query.Get("follow") == "true"
}

// stream is the body of an answer that is read while it comes.
type stream struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.end()

	return s.ReadCloser.Close()
}

// exchange makes a request to one server and reads the whole answer, so that a lost connection is an error, too.
// It ends when there is no progress for the given time.
func (s *Server) exchange(
	r *http.Request, body []byte, bound time.Duration,
) (response *http.Response, answer []byte, err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	silence := time.AfterFunc(bound, func() { cancel(fmt.Errorf("no response within %s", bound)) })
	streams := false

	defer func() {
		silence.Stop()

		if !streams {
			cancel(nil)
		}
	}()

	base, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, err
	}

	moved := func() { silence.Reset(bound) }
	out := r.Clone(ctx)
	// A redirect stays with the server, too, and on TLS.
	out.Host, out.URL.Scheme, out.URL.Host = "", base.Scheme, base.Host

	if r.Body != nil {
		// A server that is about to close a connection refuses what it has not read yet.
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&noticed{bytes.NewReader(body), moved}), nil }
		out.Body = io.NopCloser(&noticed{bytes.NewReader(body), moved})
	}

	if response, err = s.http.RoundTrip(out); err != nil {
		return nil, nil, whyEnded(ctx, err)
	}

	if streams = endless(r) && response.StatusCode == http.StatusOK; streams {
		return response, nil, nil
	}

	answer, err = io.ReadAll(expansion.NewBudget(largestAnswer).Reader(&noticed{response.Body, moved}))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, nil, fmt.Errorf("read the response: %w", whyEnded(ctx, err))
	}

	response.Body = io.NopCloser(bytes.NewReader(answer))

	return response, answer, nil
}

// largestAnswer in bytes is what is read of one answer, decompressed: some ten thousand pods. What comes as gzip,
// net/http decompresses to up to a thousand times its size.
const largestAnswer = 256 << 20

// noticed reports each read.
type noticed struct {
	io.Reader
	moved func()
}

// Read implements io.Reader.
func (n *noticed) Read(p []byte) (int, error) {
	n.moved()

	return n.Reader.Read(p)
}

// whyEnded is why a context ended, if one did before there was a connection or an answer: what
// net/http says of that depends on the protocol.
func whyEnded(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, ErrUnreachable) {
		return cause
	}

	return err
}

// untyped is how the answer begins to a server-side apply of what does not fit the schema. It has
// code 500 and no reason, like an error of etcd that passes (Kubernetes 1.36,
// apimachinery/pkg/util/managedfields/internal/structuredmerge.go Apply).
const untyped = "failed to create typed patch object"

// tryAgain returns the error of an answer that has to be retried: the server is not able to answer, or another
// client changed the object in between. A PodDisruptionBudget that refuses an eviction is an answer, although its
// status code is that of an overloaded server.
func (f *Failover) tryAgain(r *http.Request, code int, answer []byte) error {
	if code < http.StatusBadRequest {
		return nil
	}

	// A proxy in between answers with its own text.
	verdict := apierrors.NewGenericServerResponse(code, r.Method, schema.GroupResource{}, "", "", 0, true)

	status := statusIn(answer)
	if status != nil {
		verdict = &apierrors.StatusError{ErrStatus: *status}
	}

	switch {
	case strings.HasPrefix(verdict.ErrStatus.Message, untyped),
		apierrors.HasStatusCause(verdict, policyv1.DisruptionBudgetCause):
		return nil
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return verdict
	case status != nil && apierrors.IsConflict(verdict) && !f.conflicts:
		return verdict
	default:
		return nil
	}
}

// statusIn is the Status that an answer is, in JSON or in protobuf; nil for any other.
func statusIn(answer []byte) *metav1.Status {
	var status metav1.Status
	if json.Unmarshal(answer, &status) == nil && status.Kind == "Status" {
		return &status
	}

	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer, nil, nil)
	if decoded, is := object.(*metav1.Status); err == nil && is {
		return decoded
	}

	return nil
}
