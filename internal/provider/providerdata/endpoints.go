package providerdata

import (
	"errors"
	"net/url"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

// Endpoints is a list of endpoints of Kubernetes.
type Endpoints struct {
	// Unknown is true while the members of the list are unknown.
	Unknown bool
	URLs    []string
}

// Has reports whether an endpoint is in the list, in any spelling, or may be.
func (e Endpoints) Has(endpoint string) bool {
	wanted, err := endpointURL(endpoint)
	if err != nil {
		return false
	}

	return e.Unknown || slices.ContainsFunc(e.URLs, func(text string) bool {
		listed, err := endpointURL(text)

		return err == nil && redirect.SameOrigin(listed, wanted)
	})
}

// CheckEndpoint returns what is wrong with an endpoint, or nil.
func CheckEndpoint(text string) error {
	_, err := endpointURL(text)

	return err
}

func endpointURL(endpoint string) (*url.URL, error) {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" {
		return nil, errors.New("it is not an https URL with a host")
	}

	return parsed, nil
}
