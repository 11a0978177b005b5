package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// bound is the transport of all requests of a session: none is sent after the context ended. Helm's requests have
// contexts that never end (Helm 3.21, kube.Client and storage/driver.Secrets; cli-runtime 0.36, resource.Helper).
// The configuration behind it ends the running requests (kubernetes.Client.Config).
//
// A request that is refused because there are too many was not processed, and client-go retries it after the time
// that the server gives (client-go 0.36, rest.checkWait). It sleeps in a context of Helm meanwhile, and most such
// answers do not get here (kubernetes, soon). So bound retries the request itself.
//
// Requests for the lists of kinds at /api and /apis have the tag of the last answer, and a server without news
// answers with an empty body. So the lists are never stale. An action that drops them, as each of Helm's does
// (action.Configuration, getCapabilities), costs next to nothing, whatever the number of sessions.
type bound struct {
	http.RoundTripper

	ctx   context.Context //nolint:containedctx // the point of it
	slots *Slots
	// pause is between two attempts of a request that is one too many.
	pause time.Duration
}

// attempts for a rate-limited request.
const attempts = 30

// RoundTrip implements http.RoundTripper.
func (t *bound) RoundTrip(r *http.Request) (*http.Response, error) {
	for again, attempt := r, 1; ; attempt++ {
		response, err := t.once(again)
		if err != nil || response.StatusCode != http.StatusTooManyRequests {
			return response, err
		}

		if attempt == attempts || r.Body != nil && r.GetBody == nil {
			// Once is enough.
			response.Header.Del("Retry-After")

			return response, nil
		}

		if err := response.Body.Close(); err != nil {
			return nil, err
		}

		select {
		case <-time.After(t.pause):
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		case <-t.ctx.Done():
		}

		if again, err = rewound(r); err != nil {
			return nil, err
		}
	}
}

// rewound is a request with its body from the beginning.
func rewound(r *http.Request) (*http.Request, error) {
	if r.GetBody == nil {
		return r, nil
	}

	body, err := r.GetBody()
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}

	again := r.Clone(r.Context())
	again.Body = body

	return again, nil
}

func (t *bound) once(r *http.Request) (*http.Response, error) {
	if t.ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNoAnswer, context.Cause(t.ctx))
	}

	if r.Method == http.MethodGet && (r.URL.Path == "/api" || r.URL.Path == "/apis") {
		return t.revalidate(r)
	}

	return t.RoundTripper.RoundTrip(r)
}

func (t *bound) revalidate(r *http.Request) (*http.Response, error) {
	key := r.URL.Host + r.URL.Path + " " + r.Header.Get("Accept")
	known, asked := t.slots.catalog(key)

	out := r.Clone(r.Context())
	if asked {
		out.Header.Set("If-None-Match", known.tag)
	}

	response, err := t.RoundTripper.RoundTrip(out)
	if err != nil {
		return nil, err
	}

	tag := response.Header.Get("ETag")

	switch {
	case response.StatusCode == http.StatusNotModified && asked:
	case response.StatusCode == http.StatusOK && tag != "":
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, err
		}

		known = catalog{tag: tag, header: response.Header, body: body}
		t.slots.keep(key, known)
	default:
		return response, nil
	}

	return known.answer(r, response)
}

// answer is the list as if the server had sent it now.
func (c catalog) answer(r *http.Request, now *http.Response) (*http.Response, error) {
	if err := now.Body.Close(); err != nil {
		return nil, err
	}

	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: now.Proto, ProtoMajor: now.ProtoMajor, ProtoMinor: now.ProtoMinor,
		Header: c.header.Clone(), Body: io.NopCloser(bytes.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r,
	}, nil
}
