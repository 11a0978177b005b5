package provider

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Credentials are of use where programs on this machine can reach what they are for. The APIs of a cluster in containers have names
// that only its host cluster resolves: programs are led there by what the host exposes, or through a tunnel
// that is there as long as the ephemeral resource is open.

// entrance is how programs on this machine reach an API.
type entrance struct {
	// address is host:port.
	address string
	// name is the one that the certificate of the API has, where that is not the host of the address.
	name string
	// tunnel is what the address leads through; nil for what is exposed.
	tunnel *tunnel
}

// entranceTo finds the way to the Kubernetes API of a cluster in containers; nil where its endpoint is to be taken as it is.
func (m *machinery) entranceTo(ctx context.Context, handle handleModel, bundle *pki.Bundle) (*entrance, diag.Diagnostics) {
	var diags diag.Diagnostics

	p := ofHandle(handle, "cluster", &diags)
	if m == nil || p.host == nil || diags.HasError() {
		return nil, diags
	}

	endpoint, err := url.Parse(p.settings.Endpoint)
	if err != nil {
		return nil, nil // which is told of where it is used
	}

	way, err := m.routeTo(ctx, p, recordedPool{}, bundle)
	if err != nil {
		return nil, append(diags, unable("reach", "cluster", report{Cause: []string{err.Error()}}))
	}

	// An endpoint that the user chose is one that the user reaches; and so are names of the host in the host.
	if endpoint.Hostname() != way.spec.EndpointHost() || m.host.under(p.host.connection).inCluster {
		way.leave()

		return nil, nil
	}

	// The handle does not tell of what kind the Service is. Without an answer there is the tunnel all the same.
	way.spec.Endpoint = &workload.EndpointService{}

	looking, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()

	switch address, err := way.host.ExternalEndpoint(looking, way.spec); {
	case err != nil:
		tflog.Warn(ctx, "nothing is known to be exposed of the cluster, and a local port leads there", map[string]any{"reason": err.Error()})
	case address != "":
		way.leave()

		return &entrance{address: address, name: endpoint.Hostname()}, nil
	}

	return m.dig(ctx, way, endpoint.Hostname(), endpoint.Host, withPort(p.endpoints, "6443")...)
}

// talosEntranceTo is entranceTo for the Talos API of the control planes.
func (m *machinery) talosEntranceTo(ctx context.Context, handle handleModel, bundle *pki.Bundle) (*entrance, diag.Diagnostics) {
	var diags diag.Diagnostics

	p := ofHandle(handle, "cluster", &diags)
	if m == nil || p.host == nil || len(p.endpoints) == 0 || m.host.under(p.host.connection).inCluster || diags.HasError() {
		return nil, diags
	}

	way, err := m.routeTo(ctx, p, recordedPool{}, bundle)
	if err != nil {
		return nil, append(diags, unable("reach", "machines", report{Cause: []string{err.Error()}}))
	}

	targets := withPort(p.endpoints, "50000")

	return m.dig(ctx, way, "", targets[0], targets[1:]...)
}

// dig opens a tunnel along a route, to the first target that answers.
func (m *machinery) dig(ctx context.Context, way route, name, first string, others ...string) (*entrance, diag.Diagnostics) {
	opened, err := openTunnel(ctx, way.dial(), way.leave, append([]string{first}, others...)...)
	if err != nil {
		way.leave()

		return nil, diag.Diagnostics{unable("reach", "cluster", report{Cause: []string{err.Error()}})}
	}

	m.tunnels.keep(opened)

	return &entrance{address: opened.address(), name: name, tunnel: opened}, nil
}

func withPort(hosts []string, port string) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, net.JoinHostPort(strings.Trim(h, "[]"), port))
	}

	return out
}

// tunnelKey is where an ephemeral resource remembers its tunnel, for the end of it.
const tunnelKey = "tunnel"

// remember stores the tunnel of an entrance with an ephemeral resource; one that cannot be is closed.
func (e *entrance) remember(ctx context.Context, resp *ephemeral.OpenResponse, m *machinery) {
	if e == nil || e.tunnel == nil {
		return
	}

	encoded, err := json.Marshal(e.address)
	if err != nil {
		resp.Diagnostics.Append(bug("the address of a tunnel is " + e.address))
	} else {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, tunnelKey, encoded)...)
	}

	if resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(m.fill(e.address)...)
	}
}

// Close implements ephemeral.EphemeralResourceWithClose: it ends the tunnel, and with it the connections through it.
func (c *configuredEphemeral) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	encoded, diags := req.Private.GetKey(ctx, tunnelKey)
	resp.Diagnostics.Append(diags...)

	if len(encoded) == 0 || c.machinery == nil {
		return
	}

	var address string
	if err := json.Unmarshal(encoded, &address); err != nil {
		resp.Diagnostics.Append(bug("the private state has a tunnel of " + string(encoded)))

		return
	}

	resp.Diagnostics.Append(c.fill(address)...)
}

// fill closes a tunnel.
func (m *machinery) fill(address string) diag.Diagnostics {
	if err := m.tunnels.close(address); err != nil {
		return diag.Diagnostics{unsettled("A local port stays open", report{
			Attempted: "close " + address + ", which led to the cluster", Cause: []string{err.Error()}, Next: "It ends with the process of the provider.",
		}.String())}
	}

	return nil
}
