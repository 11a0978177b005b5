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
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// longAttempt bounds one request of a library to one server. An admission webhook has 10 s
// unless it asks for more (Kubernetes 1.36, ValidatingWebhook.timeoutSeconds), and another
// server has to be asked within the 30 s that go-kubernetes 0.2.41 gives a dry run.
const longAttempt = 20 * time.Second

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

	mu   sync.Mutex
	last error
}

// config is the rest.Config of a library.
func (e *everywhere) config() *rest.Config {
	return &rest.Config{
		Host: e.client.given[0].url, Transport: e, QPS: -1, WarningHandler: rest.NoWarnings{}, UserAgent: "talosop",
	}
}

// undecided is why a request got no answer the last time, nil when all of them did.
func (e *everywhere) undecided() error {
	e.mu.Lock()
	defer e.mu.Unlock()

	return e.last
}

// RoundTrip implements http.RoundTripper.
func (e *everywhere) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}

	var reasons []error

	for _, s := range e.client.order() {
		if err := context.Cause(e.ctx); err != nil {
			return nil, err
		}

		if err := r.Context().Err(); err != nil {
			return nil, err
		}

		response, err := s.exchange(r, body)
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

	e.mu.Lock()
	defer e.mu.Unlock()

	e.last = errors.New(oneLine(errors.Join(reasons...)))

	return nil, e.last
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

// exchange makes a request to one server and reads the whole answer, so that a connection
// that is lost on the way is an error, too. An answer that says to try again is one.
func (s *server) exchange(r *http.Request, body []byte) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), longAttempt, fmt.Errorf("no answer within %s", longAttempt))
	defer cancel()

	base, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}

	out := r.Clone(ctx)
	out.Host, out.URL.Host = "", base.Host

	if r.Body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}

	response, err := s.http.RoundTrip(out)
	if err != nil {
		return nil, err
	}

	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}

	response.Body = io.NopCloser(bytes.NewReader(answer))
	response.Request = r

	return response, tryAgain(response.StatusCode, answer)
}

// tryAgain is the error in an answer that is none: the server is not able to give one, or
// somebody else changed the object in between.
func tryAgain(code int, answer []byte) error {
	var status metav1.Status

	// A proxy in between answers in words of its own, and a success is no Status.
	known := code >= http.StatusBadRequest && json.Unmarshal(answer, &status) == nil && status.Kind == "Status"

	switch {
	case code < http.StatusBadRequest:
		return nil
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout,
		known && status.Reason == metav1.StatusReasonConflict:
	default:
		return nil
	}

	if known && status.Message != "" {
		return errors.New(status.Message)
	}

	return fmt.Errorf("it answers %d %s", code, http.StatusText(code))
}
