package workload

import (
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Client makes, observes and removes the objects of machines on a host cluster. It is safe for concurrent use.
type Client struct {
	config   *rest.Config
	api      clientgo.Interface
	progress func(string)
	// connection is how the host is reached, for people.
	connection string
}

// NewClient prepares a client. config retries transient errors and carries the credentials in its transport.
// connection describes the connection to the host (Identity), and progress receives events that are not errors.
func NewClient(config *rest.Config, connection string, progress func(string)) (*Client, error) {
	api, err := clientgo.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	return &Client{config: config, api: api, progress: progress, connection: connection}, nil
}

// API is the host's own.
func (h *Client) API() clientgo.Interface { return h.api }

// String names the host in errors.
func (h *Client) String() string { return "the host cluster at " + h.config.Host }
