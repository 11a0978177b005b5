package hostcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

const (
	// answerTime is how long the host may take to begin its answer.
	answerTime = 30 * time.Second
	// attempts of a request, with pauses that begin with firstPause and double.
	attempts   = 5
	firstPause = 200 * time.Millisecond
)

// retrying repeats requests that the host could not take just now: an API server that restarts, or a balancer in front
// of several that sends some requests to one that is gone. What has a Retry-After is left to client-go, which repeats
// it up to ten times (client-go 0.36, rest/with_retry.go); without one it repeats nothing.
//
// A request that may have been carried out is repeated only when doing it twice is doing it once: everything but the
// making of objects by POST. What waits for an answer for too long ends with an error.
type retrying struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	pause := firstPause

	for attempt := 1; ; attempt++ {
		again, err := rewound(r, attempt)
		if err != nil {
			return nil, err
		}

		response, err := t.bounded(again)
		if attempt == attempts || r.Context().Err() != nil || !worthRepeating(r, response, err) {
			return response, err
		}

		if response != nil {
			_ = response.Body.Close() // unread
		}

		select {
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		case <-time.After(pause):
		}

		pause *= 2
	}
}

// rewound is the request with its body from the beginning.
func rewound(r *http.Request, attempt int) (*http.Request, error) {
	again := r.Clone(r.Context())
	if attempt == 1 || r.Body == nil || r.Body == http.NoBody {
		return again, nil
	}

	if r.GetBody == nil {
		return nil, errors.New("the request cannot be retried: its body was consumed")
	}

	body, err := r.GetBody()
	again.Body = body

	return again, err
}

// bounded makes a request that ends when the answer does not begin in time. A watch has a beginning, too.
func (t retrying) bounded(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(answerTime, func() { cancel(fmt.Errorf("no response within %s", answerTime)) })

	response, err := t.RoundTripper.RoundTrip(r.WithContext(ctx))
	timer.Stop()

	if err != nil {
		// The transport's error for an ended context is not the cause.
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}

		cancel(nil)

		return nil, err
	}

	body := io.Reader(response.Body)
	if response.Uncompressed {
		body = expansion.NewBudget(largestAnswer).Reader(body)
	}

	response.Body = endingBody{body, response.Body, func() { cancel(nil) }}

	return response, nil
}

// endingBody frees the resources of a request once its answer is read.
type endingBody struct {
	io.Reader
	io.Closer
	end func()
}

// largestAnswer in bytes is what is read of one answer that came compressed.
const largestAnswer = 256 << 20

// Close implements io.Closer.
func (b endingBody) Close() error {
	defer b.end()

	return b.Closer.Close()
}

// worthRepeating reports whether a request may go better the next time, and does no harm when it does.
func worthRepeating(r *http.Request, response *http.Response, err error) bool {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return false
	}

	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED) || r.Method != http.MethodPost && cut(err)
	}

	if response.Header.Get("Retry-After") != "" {
		return false
	}

	// Nothing was done.
	if response.StatusCode == http.StatusTooManyRequests {
		return true
	}

	return r.Method != http.MethodPost &&
		slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout},
			response.StatusCode)
}

// cut reports whether a connection was lost before its answer.
func cut(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}
