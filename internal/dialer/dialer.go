package dialer

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	talosdialer "github.com/siderolabs/talos/pkg/machinery/client/dialer"
	"golang.org/x/crypto/ssh"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Options are the routes of connections. Without any they are direct.
type Options struct {
	// ProxyURL is a proxy, such as socks5://10.0.0.5:1080; see [ProxySchemes].
	ProxyURL string
	// Jump is an SSH server that connects to the addresses, behind the proxy where there is one; nil is none.
	Jump *JumpHost
}

// Dialer makes connections by one way. It is safe for concurrent use; the connection to a jump host is shared.
type Dialer struct {
	options Options

	mu     sync.Mutex
	client *ssh.Client
}

// New prepares a way; nothing is dialed yet. Errors are those of [CheckProxyURL] and of the jump host.
func New(o Options) (*Dialer, error) {
	if o.ProxyURL != "" {
		if err := CheckProxyURL(o.ProxyURL); err != nil {
			return nil, err
		}
	}

	if o.Jump != nil {
		if err := o.Jump.check(); err != nil {
			return nil, err
		}
	}

	return &Dialer{options: o}, nil
}

// ProxySchemes are the kinds of proxies.
func ProxySchemes() []string { return []string{"socks5", "http", "https"} }

// CheckProxyURL says what is wrong with the URL of a proxy; nil is nothing. The text holds no password.
func CheckProxyURL(text string) error {
	parsed, err := url.Parse(text)

	switch {
	case err != nil:
		return fmt.Errorf("not a URL") //nolint:err113 // the parser's own error repeats the password
	case !slices.Contains(ProxySchemes(), parsed.Scheme):
		return fmt.Errorf("unsupported scheme %q; use %s", parsed.Scheme, strings.Join(ProxySchemes(), ", "))
	case parsed.Hostname() == "" || parsed.Port() == "":
		return fmt.Errorf("host or port is missing")
	case strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "":
		return fmt.Errorf("a proxy URL cannot have a path or a query")
	}

	return nil
}

// String names the route without its secrets, to follow "through" in a message.
func (d *Dialer) String() string {
	var gateways []string

	if d.options.ProxyURL != "" {
		gateways = append(gateways, "the proxy "+withoutUser(d.options.ProxyURL))
	}

	if d.options.Jump != nil {
		gateways = append(gateways, "the SSH jump host "+d.options.Jump.String())
	}

	return strings.Join(gateways, " and ")
}

func withoutUser(proxy string) string {
	parsed, err := url.Parse(proxy)
	if err != nil {
		return "(unreadable URL)"
	}

	parsed.User = nil

	return parsed.String()
}

// Dial connects to host:port over TCP. Its errors name the route.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" {
		return nil, fmt.Errorf("connect through %s: unsupported network %q, only tcp is supported", d, network)
	}

	conn, err := d.dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("through %s: %w", d, err)
	}

	return conn, nil
}

func (d *Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	if d.options.Jump == nil {
		return d.first(ctx, address)
	}

	return d.jump(ctx, address)
}

// first makes the connection that leaves this computer.
func (d *Dialer) first(ctx context.Context, address string) (net.Conn, error) {
	if d.options.ProxyURL == "" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}

	// A proxy may say nothing for ever, and its dialer waits for it.
	return panics.Within(ctx, func() (net.Conn, error) {
		return talosdialer.ForProxyURL(d.options.ProxyURL)(ctx, address)
	}, func(conn net.Conn) { _ = conn.Close() }) // unused
}
