package providerdata

import (
	"context"
	"net"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Credentials are useful only when programs on this machine can reach the API. The APIs of a cluster in containers
// have names that only its host cluster resolves. Programs reach them through what the host exposes, or through a
// tunnel that stays open with the ephemeral resource.

// LocalEndpoint is how programs on this machine reach an API.
type LocalEndpoint struct {
	// Address is host:port.
	Address string
	// Name is the one in the certificate of the API, if it is not the host of the address.
	Name string
	// tunnel is what the address leads through; nil for an exposed API.
	tunnel *containers.Tunnel
}

// EndpointTo finds the route to the Kubernetes API of a cluster in containers; nil when its endpoint is reachable as
// it is.
func (m *ProviderData) EndpointTo(
	ctx context.Context, handle clusterhandle.AccessModel, bundle *pki.Bundle,
) (*LocalEndpoint, diag.Diagnostics) {
	hidden, exposed, diags := m.exposure(ctx, handle, bundle)
	if hidden == nil {
		return exposed, diags
	}

	return m.openTunnel(ctx, hidden.HostRoute, hidden.endpoint.Hostname(), hidden.endpoint.Host,
		withPort(hidden.controlPlanes, "6443")...)
}

// ExposedEndpointTo is EndpointTo for uses after the end of the provider and its tunnels.
func (m *ProviderData) ExposedEndpointTo(
	ctx context.Context, handle clusterhandle.AccessModel, bundle *pki.Bundle,
) (*LocalEndpoint, diag.Diagnostics) {
	hidden, exposed, diags := m.exposure(ctx, handle, bundle)
	if hidden == nil {
		return exposed, diags
	}

	hidden.Leave()

	if hidden.unanswered != nil {
		return nil, append(diags, tf.Diagnostic(exposureUnknown.With(
			finding.Args{"cluster": handle.Name.ValueString(), "cause": hidden.unanswered.Error()})))
	}

	return nil, append(diags, tf.Diagnostic(kubernetesNotExposed.At(
		finding.Root("cluster"), finding.Args{"cluster": handle.Name.ValueString()})))
}

// WarnOfHidden is ExposedEndpointTo for a plan: it warns of an API that nothing exposes, unless the same plan changes
// that. It does not warn when the host does not answer.
func (m *ProviderData) WarnOfHidden(
	ctx context.Context, handle clusterhandle.AccessModel, bundle *pki.Bundle,
) diag.Diagnostics {
	hidden, _, diags := m.exposure(ctx, handle, bundle)
	if hidden != nil {
		hidden.Leave()
	}

	if hidden == nil || hidden.unanswered != nil || diags.HasError() || m.Ledger().ExposedByPlan(bundle) {
		return nil // the write of the file reports what is wrong
	}

	return diag.Diagnostics{tf.Diagnostic(kubernetesNotExposedYet.With(
		finding.Args{"cluster": handle.Name.ValueString()}))}
}

// TalosIsHidden reports whether programs on this machine cannot reach the Talos API of a cluster by the addresses in
// its handle.
func (m *ProviderData) TalosIsHidden(handle clusterhandle.AccessModel) bool {
	p := OfHandle(handle, "cluster", &diag.Diagnostics{})

	return m != nil && p.Host != nil && !m.Host.Under(p.Host.Connection).InCluster
}

// hiddenEndpoint is a Kubernetes API that nothing exposes. The caller must leave its route.
type hiddenEndpoint struct {
	*HostRoute

	endpoint      *url.URL
	controlPlanes []string
	// unanswered is why it is unknown whether anything exposes it; nil when nothing does.
	unanswered error
}

// exposure finds where programs on this machine reach a Kubernetes API. Without a hidden and an exposed one, the
// endpoint of the handle is reachable as it is.
func (m *ProviderData) exposure(
	ctx context.Context, handle clusterhandle.AccessModel, bundle *pki.Bundle,
) (*hiddenEndpoint, *LocalEndpoint, diag.Diagnostics) {
	var diags diag.Diagnostics

	p := OfHandle(handle, "cluster", &diags)
	if m == nil || p.Host == nil || diags.HasError() {
		return nil, nil, diags
	}

	endpoint, err := url.Parse(p.Settings.Endpoint)
	if err != nil {
		return nil, nil, nil // the user of the endpoint reports it
	}

	route, err := m.throughHost(ctx, p, machineset.PriorState{}, bundle.Mark())
	if err != nil {
		return nil, nil, append(diags, tf.Diagnostic(hostUnreachable.With(
			finding.Args{"cluster": nameOf(p), "cause": err.Error()})))
	}

	// A custom endpoint is one that the user reaches; so are names of the host inside the host.
	if endpoint.Hostname() != route.Spec.EndpointHost() || m.Host.Under(p.Host.Connection).InCluster {
		route.Leave()

		return nil, nil, nil
	}

	// The handle does not contain the kind of the Service. Without an answer the tunnel still works.
	route.Spec.Endpoint = &workload.EndpointService{}

	looking, cancel := context.WithTimeout(ctx, containers.HostLimit)
	defer cancel()

	address, err := route.Host.ExternalEndpoint(looking, route.Spec)

	switch {
	case err != nil:
		tf.LogWarn(ctx, "nothing is known to be exposed of the cluster", map[string]any{"reason": err.Error()})
	case address != "":
		route.Leave()

		return nil, &LocalEndpoint{Address: address, Name: endpoint.Hostname()}, nil
	}

	return &hiddenEndpoint{HostRoute: route, endpoint: endpoint, controlPlanes: p.Endpoints, unanswered: err}, nil, nil
}

// TalosEndpointTo is EndpointTo for the Talos API of the control planes.
func (m *ProviderData) TalosEndpointTo(
	ctx context.Context, handle clusterhandle.AccessModel, bundle *pki.Bundle,
) (*LocalEndpoint, diag.Diagnostics) {
	var diags diag.Diagnostics

	p := OfHandle(handle, "cluster", &diags)
	if !m.TalosIsHidden(handle) || len(p.Endpoints) == 0 || diags.HasError() {
		return nil, diags
	}

	route, err := m.RouteTo(ctx, p, machineset.PriorState{}, bundle)
	if err != nil {
		return nil, append(diags, tf.Diagnostic(hostUnreachable.With(
			finding.Args{"cluster": nameOf(p), "cause": err.Error()})))
	}

	targets := withPort(p.Endpoints, "50000")

	return m.openTunnel(ctx, route, "", targets[0], targets[1:]...)
}

// openTunnel opens a tunnel along a route, to the first target that answers.
func (m *ProviderData) openTunnel(
	ctx context.Context, route Route, name, first string, others ...string,
) (*LocalEndpoint, diag.Diagnostics) {
	opened, err := containers.OpenTunnel(ctx, route.dialer(nil), route.Leave, warnInLog,
		append([]string{first}, others...)...)
	if err != nil {
		route.Leave()

		return nil, diag.Diagnostics{tf.Diagnostic(tunnelFailed.With(
			finding.Args{"target": first, "cause": err.Error()}))}
	}

	m.tunnels.Keep(opened)

	return &LocalEndpoint{Address: opened.Address(), Name: name, tunnel: opened}, nil
}

func withPort(hosts []string, port string) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, net.JoinHostPort(strings.Trim(h, "[]"), port))
	}

	return out
}

// tunnelKey is the key of an ephemeral resource's tunnel, for its end.
const tunnelKey = "tunnel"

// Remember stores the tunnel of a local endpoint with an ephemeral resource. It closes a tunnel that it cannot
// store.
func (e *LocalEndpoint) Remember(ctx context.Context, resp *ephemeral.OpenResponse, m *ProviderData) {
	if e == nil || e.tunnel == nil {
		return
	}

	resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, tunnelKey, e.Address)...)

	if resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(m.CloseTunnel(e.Address)...)
	}
}

// Close implements ephemeral.EphemeralResourceWithClose: it closes the tunnel, and with it the connections through
// it.
func (c *ConfiguredEphemeral) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	var address string

	resp.Diagnostics.Append(tf.ReadPrivate(ctx, req.Private, tunnelKey, &address)...)

	if address == "" || c.ProviderData == nil {
		return
	}

	resp.Diagnostics.Append(c.CloseTunnel(address)...)
}

// CloseTunnel closes a tunnel.
func (m *ProviderData) CloseTunnel(address string) diag.Diagnostics {
	if err := m.tunnels.Close(address); err != nil {
		return diag.Diagnostics{tf.Diagnostic(tunnelStaysOpen.With(
			finding.Args{"address": address, "cause": err.Error()}))}
	}

	return nil
}

// warnInLog logs what is too late for a diagnostic.
func warnInLog(ctx context.Context, message string, err error) {
	tf.LogWarn(ctx, message, map[string]any{"error": err.Error()})
}
