package hostcluster

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// ways are the connections to the host's API: those of client-go are shared by the whole process and have no end.
type ways struct {
	config *rest.Config
	// base URL of the API.
	base string
	// requests go over few connections; upgrades are the first request of a connection each, which has to be
	// HTTP/1.1 to be one.
	requests, upgrades http.RoundTripper
	dial               func(ctx context.Context, network, address string) (net.Conn, error)
	tls                *tls.Config
	proxy              func(*http.Request) (*url.URL, error)
	close              func()
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // that is how net/http is told of no proxy

func newWays(config *rest.Config, dial func(context.Context, string, string) (net.Conn, error)) (ways, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ways{}, errors.New("the server of its cluster is not a URL")
	}

	config = rest.CopyConfig(config)
	config.Dial = dial

	// The plugin of an exec user puts a dialer of its own in, to end connections with the certificate they were made with.
	means, err := config.TransportConfig()
	if err != nil {
		return ways{}, err
	}

	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return ways{}, err
	}

	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}

	w := ways{config: config, base: strings.TrimSuffix(base.String(), "/"), dial: means.DialHolder.Dial, tls: tlsConfig, proxy: config.Proxy}
	multiplexed, single := w.transport(), w.transport()
	multiplexed.ForceAttemptHTTP2 = true
	multiplexed.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: connectTime}
	single.DisableKeepAlives = true
	w.close = func() { multiplexed.CloseIdleConnections() }

	if w.requests, err = kubernetes.Authenticate(config, multiplexed); err != nil {
		return ways{}, err
	}

	w.upgrades, err = kubernetes.Authenticate(config, single)

	return w, err
}

// pingAfter is how long a connection with a request under way may be silent before it has to show that it lives.
const pingAfter = 10 * time.Second

func (w ways) transport() *http.Transport {
	return &http.Transport{
		DialContext: w.dial, TLSClientConfig: w.tls.Clone(), TLSHandshakeTimeout: connectTime, Proxy: w.proxy,
		IdleConnTimeout: time.Minute,
	}
}
