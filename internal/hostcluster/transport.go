package hostcluster

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// pingAfter is how long a connection with a running request may be silent before it is pinged.
const pingAfter = 10 * time.Second

func noProxy(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // net/http takes this as no proxy

// newTransport makes connections to the host's API at base that end with close: those of client-go are shared by the
// whole process and have no end.
func newTransport(config *rest.Config) (base string, authenticated http.RoundTripper, closeIdle func(), err error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", nil, nil, errors.New("the server of the kubeconfig's cluster is not a URL")
	}

	config = rest.CopyConfig(config)
	config.Dial = (&net.Dialer{Timeout: connectTime}).DialContext

	// The plugin of an exec user puts a dialer of its own in, to end connections with the certificate they were made with.
	means, err := config.TransportConfig()
	if err != nil {
		return "", nil, nil, err
	}

	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return "", nil, nil, err
	}

	transport := &http.Transport{
		DialContext: means.DialHolder.Dial, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: connectTime, Proxy: config.Proxy,
		IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: connectTime},
	}

	authenticated, err = api.Authenticate(config, transport)

	return strings.TrimSuffix(server.String(), "/"), authenticated, transport.CloseIdleConnections, err
}
