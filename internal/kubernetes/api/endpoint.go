package api

import (
	"context"
	"net/http"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Endpoint is how the endpoint answered the last request that went there. A new client sends its first one there, so
// that this costs none of its own.
func (c *Client) Endpoint() kubestate.Endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()

	return kubestate.Endpoint{URL: c.given[0].URL, OutOfReach: c.Options.EndpointOutOfReach,
		Asked: c.endpoint.asked, Cause: c.endpoint.cause}
}

// AskEndpoint asks the endpoint alone for its version, and is how it answered. An endpoint out of reach is not asked.
func (c *Client) AskEndpoint(ctx context.Context) kubestate.Endpoint {
	if c.Options.EndpointOutOfReach {
		return c.Endpoint()
	}

	c.mu.Lock()
	c.endpoint = endpointAnswer{}
	c.mu.Unlock()

	pinned, err := c.At(c.given[0])
	if err == nil {
		_, err = versionFrom(ctx, pinned)
	}

	seen := c.Endpoint()
	if err == nil || seen.Cause != "" || ctx.Err() != nil {
		return seen
	}

	// It answers, and not as the API of this cluster does: a refusal of its credentials, or no version.
	seen.Asked, seen.Cause = true, OneLine(err)

	return seen
}

// endpointAnswer is the result of the last request to the endpoint.
type endpointAnswer struct {
	asked bool
	cause string
}

// noteEndpoint records the result of a request to a server, if that is the endpoint. Any answer of an API server
// itself counts; an error of a load balancer does not. A request that its context ended says nothing, and neither does
// the readiness of an API server: [kubestate.State.Unready] has it.
func (c *Client) noteEndpoint(r *http.Request, s *Server, response *http.Response, answer []byte, err error) {
	if s != c.given[0] || r.Context().Err() != nil || r.URL.Path == readyz {
		return
	}

	noted := endpointAnswer{asked: true}

	answered := response != nil && (response.StatusCode < http.StatusInternalServerError || statusIn(answer) != nil)
	if err != nil && !answered {
		noted.cause = OneLine(err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.endpoint = noted
}
