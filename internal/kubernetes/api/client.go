package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// defaultPort of the Kubernetes API on a control plane (Talos 1.13,
// constants.DefaultControlPlanePort).
const defaultPort = "6443"

// Options of a [Client].
type Options struct {
	// Endpoint is the URL of the cluster's API, such as https://10.0.0.10:6443.
	Endpoint string
	// Fallbacks are control planes to ask when the endpoint does not answer: hosts
	// or host:port, on Port without one.
	Fallbacks []string
	// CA of the cluster, and a client certificate of it with its key; PEM encoded.
	CA, Cert, Key []byte
	// Former are credentials of the other CAs in CA, while the CA of the cluster is rotated: of each only CA, Cert and
	// Key are used, for servers whose own certificate that CA signed.
	Former []Options
	// Cluster identifies the cluster; by default that is its CA.
	Cluster string
	// OwnerKeys authenticate the owner marks on nodes: the first one signs, and each of them verifies. Without one no mark
	// counts, and none can be written.
	OwnerKeys [][]byte
	// Limit restricts requests other than reads; nil is no limit.
	Limit *Limit
	// EndpointOutOfReach is for an endpoint that cannot be reached from here: the fallbacks are asked first.
	EndpointOutOfReach bool
	// Port is where an API server listens on its own machine, 6443 by default (Talos:
	// cluster.controlPlane.localAPIServerPort).
	Port string
	// Dial makes TCP connections, which outlive the context they are made with; by default
	// directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// StaticPods lets an observation include the pods of the control plane: before
	// anything is changed it has to be known that they run.
	StaticPods bool
	// EachServer adds to an observation the certificate that each API server shows, and whether it is ready.
	EachServer bool
	// Connect bounds TCP and TLS for one server, 3 s by default; Attempt one
	// request to one server, 5 s; Call a request as a whole, 10 s.
	Connect, Attempt, Call time.Duration
	// Await bounds the wait for a component to run, that for manifests to be reconciled, and
	// the time without progress of the workloads among them; 5 min by default, as in talosctl
	// upgrade-k8s.
	Await time.Duration
	// Steady is how long the container of an API server that cannot be reached at its node's own address has to
	// run, without a restart, to count as running; 1 min by default.
	Steady time.Duration
	// Poll is the time between requests in a wait, such as for a component, a drain, or reconciliation; 1 s by
	// default. It begins with a twentieth of that.
	Poll time.Duration
	// Name of the run, such as the name of its resource, shown on nodes that it cordoned; may be empty.
	Name string
	// Progress receives events that are not errors, such as a lock that could not be released. It may be nil, and
	// several goroutines may call it.
	Progress func(message string)
}

// String hides the credentials.
func (o Options) String() string { return "Kubernetes API at " + o.Endpoint }

// GoString hides the credentials from %#v.
func (o Options) GoString() string { return o.String() }

// Format hides the credentials from every verb.
func (o Options) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, o.String()) }

// Client is the typed API of one cluster, each request of which goes to the servers in turn until one
// answers. It is safe for concurrent use.
type Client struct {
	clientgo.Interface

	// Options are those that were given, with their defaults and without credentials.
	Options Options
	// ValidUntil is when the client certificate ends; zero where that is not known.
	ValidUntil time.Time
	// Cluster distinguishes clusters: a SHA-256 of the CA or, of a kubeconfig, of the server and its CA.
	Cluster string

	// given are the servers of the options, the endpoint first.
	given   []*Server
	connect func(base string) *Server

	mu sync.Mutex
	// learned are the control planes that the cluster itself names, asked after those given.
	learned []*Server
	// preferred is the server that answered last.
	preferred *Server
	// endpoint is how the first of given answered last.
	endpoint endpointAnswer
}

// Server is one API server, or what is in front of several.
type Server struct {
	// URL of it, without a path.
	URL  string
	http transport
	// certificate reads the certificate that it shows; nil where that is not known to be of the cluster's CA.
	certificate func(ctx context.Context) (kubestate.Certificate, error)
}

// transport carries requests to one server, with the credentials for it.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// New prepares a client; it does no I/O. The error is about an endpoint or
// credentials that cannot be read.
func New(o Options) (*Client, error) {
	o = o.withDefaults()

	id, err := o.identity()
	if err != nil {
		return nil, err
	}

	urls, err := o.urls()
	if err != nil {
		return nil, err
	}

	c := &Client{Options: o.withoutCredentials(),
		Cluster: cmp.Or(o.Cluster, fmt.Sprintf("%x", sha256.Sum256(o.CA))), ValidUntil: id.cert.Leaf.NotAfter}
	c.connect = func(base string) *Server {
		return &Server{URL: base, http: id.transport(o),
			certificate: func(ctx context.Context) (kubestate.Certificate, error) { return shown(ctx, o, base, id.roots) }}
	}

	for _, u := range urls {
		c.given = append(c.given, c.connect(u))
	}

	if o.EndpointOutOfReach && len(c.given) > 1 {
		c.preferred = c.given[1]
	}

	return c, c.open()
}

// open makes the typed API of the client's servers.
func (c *Client) open() (err error) {
	c.Interface, err = clientgo.NewForConfigAndClient(c.restConfig(), &http.Client{Transport: c.typed(c.order)})
	if err != nil {
		return fmt.Errorf("prepare the Kubernetes API at %s: %w", c.given[0].URL, err)
	}

	return nil
}

// restConfig is that of the typed API.
func (c *Client) restConfig() *rest.Config {
	return &rest.Config{
		Host: c.given[0].URL,
		ContentConfig: rest.ContentConfig{
			// A node list is several times smaller in protobuf.
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/json",
		},
		QPS:            -1,
		WarningHandler: rest.NoWarnings{},
		UserAgent:      userAgent,
	}
}

// withoutCredentials are options that may be kept.
func (o Options) withoutCredentials() Options {
	o.CA, o.Cert, o.Key, o.Former = nil, nil, nil, nil

	return o
}

func (o Options) withDefaults() Options {
	o.Connect = cmp.Or(o.Connect, 3*time.Second)
	o.Attempt = cmp.Or(o.Attempt, 5*time.Second)
	o.Call = cmp.Or(o.Call, 10*time.Second)
	o.Steady = cmp.Or(o.Steady, time.Minute)
	o.Await = cmp.Or(o.Await, 5*time.Minute)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Port = cmp.Or(o.Port, defaultPort)

	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: o.Connect}).DialContext
	}

	if o.Progress == nil {
		o.Progress = func(string) {}
	}

	return o
}

// urls are the base URLs in the order of preference, each once.
func (o Options) urls() ([]string, error) {
	endpoint, err := url.Parse(o.Endpoint)
	if err != nil || endpoint.Scheme != "https" || endpoint.Host == "" {
		return nil, fmt.Errorf("read the Kubernetes endpoint %q: not an https URL", o.Endpoint)
	}

	urls := []string{"https://" + endpoint.Host}

	for _, host := range o.Fallbacks {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), o.Port)
		}

		if u := "https://" + host; !slices.Contains(urls, u) {
			urls = append(urls, u)
		}
	}

	return urls, nil
}

// newTransport makes connections as the options say.
func newTransport(o Options, tlsConfig *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         reach(o),
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: o.Connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
		// A machine that goes down does not close its connections.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: o.Attempt},
	}
}

// pingAfter is how long a connection with a running request may be silent before it is pinged.
const pingAfter = 10 * time.Second

// userAgent is what the API server's audit log shows.
const userAgent = "talosop"

// ErrUnreachable is that no TCP connection could be made, so nothing was asked.
var ErrUnreachable = errors.New("cannot connect to the Kubernetes API")

// unreachableError is why.
type unreachableError struct{ error }

func (e *unreachableError) Unwrap() error        { return e.error }
func (e *unreachableError) Is(target error) bool { return target == ErrUnreachable }

// reach makes connections within the time that the options give, and marks the errors of
// doing so.
func reach(o Options) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, o.Connect, fmt.Errorf("no connection within %s", o.Connect))
		defer cancel()

		conn, err := o.Dial(ctx, network, address)
		if err != nil {
			return nil, &unreachableError{err}
		}

		return conn, nil
	}
}

// Close ends idle connections. The client stays usable.
func (c *Client) Close() {
	for _, s := range c.order() {
		s.http.CloseIdleConnections()
	}
}

// Until is [wait.Until] as often as the options say.
func (c *Client) Until(ctx context.Context, condition func(context.Context) error) error {
	const earlier = 20

	return wait.Backoff(ctx, c.Options.Poll/earlier, c.Options.Poll, condition)
}

// WithoutURL is an error whose text does not have the request that net/http puts in front of a reason: the
// reasons name the servers.
func WithoutURL(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}

	return &plainError{err, strings.ReplaceAll(err.Error(), u.Error(), u.Err.Error())}
}

type plainError struct {
	error

	text string
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.error }

// order returns the servers, the one that answered last first and those learned last.
func (c *Client) order() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()

	out := make([]*Server, 0, 1+len(c.given)+len(c.learned))
	if c.preferred != nil {
		out = append(out, c.preferred)
	}

	for _, s := range slices.Concat(c.given, c.learned) {
		if s != c.preferred {
			out = append(out, s)
		}
	}

	return out
}

func (c *Client) prefer(s *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.preferred = s
}

// turnFrom makes another server the first to ask, if s is that.
func (c *Client) turnFrom(s *Server) {
	order := c.order()
	if len(order) > 1 && order[0] == s {
		c.prefer(order[1])
	}
}
