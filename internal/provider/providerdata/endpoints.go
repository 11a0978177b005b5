package providerdata

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"
)

// Endpoints is a list of endpoints of Kubernetes.
type Endpoints struct {
	// Unknown is true while it is not known which are in it.
	Unknown bool
	URLs    []string
}

// Has reports whether an endpoint is in the list, however it is spelled, or may be.
func (e Endpoints) Has(endpoint string) bool {
	wanted, err := serverOf(endpoint)
	if err != nil {
		return false
	}

	for _, text := range e.URLs {
		if server, err := serverOf(text); err == nil && server == wanted {
			return true
		}
	}

	return e.Unknown
}

// CheckEndpoint says what is wrong with an endpoint; nil is nothing.
func CheckEndpoint(text string) error {
	_, err := serverOf(text)

	return err
}

// serverOf is host:port of an endpoint.
func serverOf(endpoint string) (string, error) {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" {
		return "", errors.New("it is not an https URL with a host")
	}

	return net.JoinHostPort(strings.ToLower(parsed.Hostname()), cmp.Or(parsed.Port(), "443")), nil
}
