package kubernetes

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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// longAttempt bounds the silence of one server in a request of a library. An admission
	// webhook has 10 s unless it asks for more (Kubernetes 1.36,
	// ValidatingWebhook.timeoutSeconds), and another server has to be asked within the 30 s that
	// go-kubernetes 0.2.41 gives a dry run.
	longAttempt = 20 * time.Second
	// longestAttempt is that for writing where nobody is in a hurry: the API server itself ends a
	// request after 60 s (Kubernetes 1.36, --request-timeout), and webhooks may take 30 s each.
	longestAttempt = 65 * time.Second
)

// Config is a configuration for libraries that speak to the API by themselves, such as Helm. Each
// of their requests goes to the servers of the client in turn until one answers, whatever context
// the library gives it, and ends when ctx ends: the error then is its cause. Answers are passed on
// as they are, refusals too. A request that no server answers gives an error that is
// [ErrNoAnswer], also below what the library wraps around it; one that creates something is not
// sent to another server once it may have reached one. Bodies of any size pass, as long as they
// make progress; watches and logs that are followed do without a bound.
//
// Requests are not limited in number, warnings of the API are dropped, and no credentials are in
// it: they are behind its transport. It does no I/O itself.
func (c *Client) Config(ctx context.Context) *rest.Config {
	return (&everywhere{client: c, ctx: ctx, faithful: true}).config()
}

// everywhere is a transport for libraries that know one server only: each of their requests
// goes to the servers of the client in turn until one gives an answer, as in [Client.do].
//
// What no server answers, and what the API cannot answer just now, becomes an error that
// says nothing but its text. go-kubernetes would repeat these by itself, for minutes, and
// print each to the standard error of the process (go-retry 0.3.3, WithErrorLogging); here
// the caller repeats the whole, see undecided.
type everywhere struct {
	client *Client
	// ctx ends what a library does in the background.
	ctx context.Context //nolint:containedctx // fluxcd/pkg/ssa 0.77 waits for definitions without the caller's context (WaitForSet)
	// faithful is for libraries that make something of a refusal: when no server has anything
	// better, what the last one said is passed on as it is, also that it cannot answer just now.
	faithful bool

	mu   sync.Mutex
	last error
}

// config is the rest.Config of a library.
func (e *everywhere) config() *rest.Config {
	return &rest.Config{
		Host: e.client.given[0].url, Transport: e, QPS: -1, WarningHandler: rest.NoWarnings{}, UserAgent: userAgent,
	}
}

// undecided is why a request got no answer the last time, nil when all of them did.
func (e *everywhere) undecided() error {
	e.mu.Lock()
	defer e.mu.Unlock()

	return e.last
}

// noAnswerError is why no server answered a request. It is [ErrNoAnswer] and, where a context
// ended it, the cause of that; what it is made of shows in its text only.
type noAnswerError struct {
	text  string
	ended error
}

func (e *noAnswerError) Error() string        { return e.text }
func (e *noAnswerError) Is(target error) bool { return target == ErrNoAnswer }
func (e *noAnswerError) Unwrap() error        { return e.ended }

// ended is the error of a request that a context ended.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return &noAnswerError{text: oneLine(cause), ended: cause}
	}

	return nil
}

// RoundTrip implements http.RoundTripper.
func (e *everywhere) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}

	ctx, end := e.bind(r.Context())

	response, err := e.inTurn(r.WithContext(ctx), body)
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
func (e *everywhere) bind(request context.Context) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(request)
	release := context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) })

	return ctx, func() {
		release()
		cancel(nil)
	}
}

// inTurn makes a request to the servers in turn.
func (e *everywhere) inTurn(r *http.Request, body []byte) (refusal *http.Response, err error) {
	var reasons []error

	for _, s := range e.client.order() {
		if err := ended(r.Context()); err != nil {
			return nil, err
		}

		response, answer, err := s.exchange(r, body, e.bound(r))
		if err == nil {
			refusal = response
			err = tryAgain(response.StatusCode, answer, e.faithful)
		}

		if err == nil {
			e.client.prefer(s)

			return response, nil
		}

		reasons = append(reasons, fmt.Errorf("%s: %w", s.url, err))

		s.http.CloseIdleConnections()
		e.client.turnFrom(s)

		// What the server may have created would be refused by the next one.
		var unreachable *unreachableError
		if r.Method == http.MethodPost && !errors.As(err, &unreachable) {
			break
		}
	}

	if e.faithful && refusal != nil {
		soon(refusal.Header)

		return refusal, nil
	}

	e.mu.Lock()
	defer e.mu.Unlock()

	e.last = &noAnswerError{text: oneLine(errors.Join(reasons...)), ended: context.Cause(r.Context())}

	return nil, e.last
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
func (e *everywhere) bound(r *http.Request) time.Duration {
	if e.faithful && r.Method != http.MethodGet {
		return longestAttempt
	}

	return longAttempt
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

// endless reports whether the answer to a request comes bit by bit for as long as somebody reads
// it: a watch, or a log that is followed.
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

// exchange makes a request to one server and reads the whole answer, so that a connection
// that is lost on the way is an error, too. It ends when nothing moves for the time given.
func (s *server) exchange(r *http.Request, body []byte, bound time.Duration) (response *http.Response, answer []byte, err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	silence := time.AfterFunc(bound, func() { cancel(fmt.Errorf("no answer within %s", bound)) })
	streams := false

	defer func() {
		silence.Stop()

		if !streams {
			cancel(nil)
		}
	}()

	base, err := url.Parse(s.url)
	if err != nil {
		return nil, nil, err
	}

	moved := func() { silence.Reset(bound) }
	out := r.Clone(ctx)
	out.Host, out.URL.Host = "", base.Host

	if r.Body != nil {
		// A server that is about to end a connection refuses what it has not read yet.
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&noticed{bytes.NewReader(body), moved}), nil }
		out.Body = io.NopCloser(&noticed{bytes.NewReader(body), moved})
	}

	if response, err = s.http.RoundTrip(out); err != nil {
		return nil, nil, whyEnded(ctx, err)
	}

	if streams = endless(r) && response.StatusCode == http.StatusOK; streams {
		return response, nil, nil
	}

	answer, err = io.ReadAll(&noticed{response.Body, moved})
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, nil, fmt.Errorf("read the answer: %w", whyEnded(ctx, err))
	}

	response.Body = io.NopCloser(bytes.NewReader(answer))

	return response, answer, nil
}

// noticed tells when something was read.
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
	var unreachable *unreachableError
	if cause := context.Cause(ctx); cause != nil && !errors.As(err, &unreachable) {
		return cause
	}

	return err
}

// untyped is how the answer begins to a server-side apply of what does not fit the schema. It has
// code 500 and no reason, like an error of etcd that passes (Kubernetes 1.36,
// apimachinery/pkg/util/managedfields/internal/structuredmerge.go Apply).
const untyped = "failed to create typed patch object"

// tryAgain is the error in an answer that is none: the server is not able to give one, or
// somebody else changed the object in between. The latter is a verdict for whoever wants
// to hear all.
func tryAgain(code int, answer []byte, faithful bool) error {
	var status metav1.Status

	// A proxy in between answers in words of its own, and a success is no Status.
	known := code >= http.StatusBadRequest && json.Unmarshal(answer, &status) == nil && status.Kind == "Status"

	switch {
	case code < http.StatusBadRequest, known && strings.HasPrefix(status.Message, untyped):
		return nil
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout,
		known && status.Reason == metav1.StatusReasonConflict && !faithful:
	default:
		return nil
	}

	if known && status.Message != "" {
		return errors.New(status.Message)
	}

	return fmt.Errorf("it answers %d %s", code, http.StatusText(code))
}
