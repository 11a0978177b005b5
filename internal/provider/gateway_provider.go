package provider

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/dialer"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func providerProxy() schema.StringAttribute {
	return tf.OptionalSensitive("Proxy for all machines and Kubernetes APIs: `socks5://`, `http://` or `https://` " +
		"(both with CONNECT) with host and port, and optional user and password. It resolves the names; variables such " +
		"as `HTTPS_PROXY` are ignored. See the [guide](guides/private-networks.md).")
}

func providerJumpHost() schema.SingleNestedAttribute {
	return tf.OptionalObject("SSH server for connections to all machines and Kubernetes APIs, as with `ssh -J`; it "+
		"must allow TCP forwarding and resolves the names. With `proxy_url`, connections to it use the proxy. See the "+
		"[guide](guides/private-networks.md).", map[string]schema.Attribute{
		"address": tf.RequiredString("Address or name of the server, with the port if it is not 22."),
		"user":    tf.RequiredString("User to log in as."),
		"private_key": tf.OptionalSensitive("Private key of the user in PEM, without a passphrase. Default: the keys of " +
			"the SSH agent at `SSH_AUTH_SOCK`."),
		"host_key": tf.OptionalString("Public key of the server, such as `ssh-ed25519 AAAA…`. Default: the keys in " +
			"`known_hosts`."),
		"known_hosts": tf.OptionalString("File with the keys of known servers, in OpenSSH format, also with hashed " +
			"names. Default: `~/.ssh/known_hosts`."),
	})
}

// gatewayOptions reads how machines are reached; known is false while part of it is unknown.
func (m providerModel) gatewayOptions() (o dialer.Options, known bool) {
	r := &tf.Reader{}
	o.ProxyURL = r.Text(m.ProxyURL)

	if m.JumpHost.IsUnknown() {
		return o, false
	}

	if !m.JumpHost.IsNull() {
		given := tf.Fields{Reader: r, Attributes: m.JumpHost}
		o.Jump = &dialer.JumpHost{Address: given.Text("address"), User: given.Text("user"),
			PrivateKey: given.Text("private_key"), HostKey: given.Text("host_key"), KnownHosts: given.Text("known_hosts")}
	}

	return o, !r.Unknown
}

// errGatewayUnknown is the error of every connection while the gateway is unknown.
var errGatewayUnknown = errors.New("proxy_url or jump_host of the provider is unknown before the apply, and all " +
	"connections go through them")

// dial makes connections through the configured gateway; nil connects directly.
func (m providerModel) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	options, known := m.gatewayOptions()

	switch {
	case !known:
		return func(context.Context, string, string) (net.Conn, error) { return nil, errGatewayUnknown }
	case options == dialer.Options{}:
		return nil
	}

	gateway, err := dialer.New(options)
	if err != nil { // the validation reports it
		return func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}

	return gateway.Dial
}

// gateway names what connections go through, without its address. The address, such as that of a tunnel, may differ
// between plan and apply, or become known only in the apply. The operations of both have to be the same.
func (m providerModel) gateway() string {
	return strings.Join(finding.NonEmpty(nameOf(m.JumpHost, "the SSH jump host"), nameOf(m.ProxyURL, "the proxy")),
		" behind ")
}

// nameOf is the name when a value is given, and otherwise empty.
func nameOf(given attr.Value, name string) string {
	if given.IsNull() {
		return ""
	}

	return name
}

// validateGateway reports mistakes in what is known of the gateway.
func (m providerModel) validateGateway() (diags diag.Diagnostics) {
	check := func(at path.Path, value types.String, allowed string, wrong func(string) error) {
		if value.IsNull() || value.IsUnknown() {
			return
		}

		if err := wrong(value.ValueString()); err != nil {
			diags.Append(tf.Diagnostic(invalidGateway.At(
				tf.PathOf(at), finding.Args{"cause": err.Error(), "allowed": allowed})))
		}
	}

	check(path.Root("proxy_url"), m.ProxyURL, "a URL such as socks5://10.0.0.5:1080", dialer.CheckProxyURL)

	if m.JumpHost.IsNull() || m.JumpHost.IsUnknown() {
		return diags
	}

	at := path.Root("jump_host")
	text := func(name string) types.String {
		value, _ := m.JumpHost.Attributes()[name].(types.String)

		return value
	}

	check(at.AtName("address"), text("address"), "a host or host:port, such as bastion.example.com", notEmpty)
	check(at.AtName("user"), text("user"), "the name of a user", notEmpty)
	check(at.AtName("private_key"), text("private_key"), "a private key in PEM without a passphrase",
		dialer.CheckPrivateKey)
	check(at.AtName("host_key"), text("host_key"), "a line of a .pub file", dialer.CheckHostKey)

	return diags
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}

	return nil
}
