package hostcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// What the host cannot take just now is repeated, unless it might be done twice.
func TestRetrying_repeatsWhatIsSafe(t *testing.T) {
	reset, refused := fmt.Errorf("read: %w", syscall.ECONNRESET), fmt.Errorf("dial: %w", syscall.ECONNREFUSED)

	for name, test := range map[string]struct {
		method string
		code   int
		header string
		err    error
		asked  int
	}{
		"a server that restarts":       {http.MethodGet, 0, "", refused, attempts},
		"and is asked to make":         {http.MethodPost, 0, "", refused, attempts},
		"a connection that ends":       {http.MethodPatch, 0, "", reset, attempts},
		"in the middle of an answer":   {http.MethodDelete, 0, "", io.ErrUnexpectedEOF, attempts},
		"when something is made":       {http.MethodPost, 0, "", reset, 1},
		"a balancer":                   {http.MethodGet, http.StatusBadGateway, "", nil, attempts},
		"that is asked to make":        {http.MethodPost, http.StatusBadGateway, "", nil, 1},
		"too much":                     {http.MethodPost, http.StatusTooManyRequests, "", nil, attempts},
		"what client-go repeats":       {http.MethodGet, http.StatusTooManyRequests, "1", nil, 1},
		"a webhook that fails":         {http.MethodPatch, http.StatusInternalServerError, "", nil, 1},
		"an answer":                    {http.MethodGet, http.StatusOK, "", nil, 1},
		"an unknown name":              {http.MethodGet, 0, "", errors.New("no such host"), 1},
		"a certificate of another one": {http.MethodGet, 0, "", errors.New("unknown authority"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				transport := retrying{roundTripper(func(r *http.Request) (*http.Response, error) {
					asked++

					if body, err := io.ReadAll(r.Body); err != nil || string(body) != "body" {
						t.Errorf("attempt %d has the body %q, %v", asked, body, err)
					}

					if test.err != nil {
						return nil, test.err
					}

					header := http.Header{}
					if test.header != "" {
						header.Set("Retry-After", test.header)
					}

					return &http.Response{StatusCode: test.code, Header: header, Body: io.NopCloser(strings.NewReader("answer"))}, nil
				})}

				r, err := http.NewRequestWithContext(t.Context(), test.method, "https://host", strings.NewReader("body"))
				if err != nil {
					t.Fatal(err)
				}

				response, err := transport.RoundTrip(r)
				if !errors.Is(err, test.err) || asked != test.asked {
					t.Errorf("asked %d times, %v, want %d", asked, err, test.asked)
				}

				if err != nil {
					return
				}

				if body, err := io.ReadAll(response.Body); err != nil || string(body) != "answer" {
					t.Errorf("the answer is %q, %v", body, err)
				}

				_ = response.Body.Close()
			})
		})
	}
}

// A host that never answers is not waited for, and neither is an answer that no caller needs any more.
func TestRetrying_contextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := retrying{roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()

			return nil, r.Context().Err()
		})}

		begun := time.Now()

		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://host", nil)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := transport.RoundTrip(r); err == nil || err.Error() != "no response within 30s" || time.Since(begun) != answerTime { //nolint:bodyclose // there is none
			t.Errorf("after %s: %v", time.Since(begun), err)
		}

		interrupted := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())

		time.AfterFunc(time.Second, func() { cancel(interrupted) })

		if _, err := transport.RoundTrip(r.WithContext(ctx)); !errors.Is(err, interrupted) { //nolint:bodyclose // there is none
			t.Errorf("%v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
