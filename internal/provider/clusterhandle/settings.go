package clusterhandle

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Settings reads what a handle says about the configuration of every machine. What can be spelt in several ways gets
// one of them.
func (h HandleModel) Settings(ctx context.Context, r *tf.Reader) machineconfig.Cluster {
	c := machineconfig.Cluster{
		Name:              r.Text(h.Name),
		Endpoint:          r.Text(h.Endpoint),
		KubernetesVersion: r.Text(h.KubernetesVersion),
		Contract:          r.Text(h.VersionContract),
		CertSANs:          r.Texts(h.CertSANs),
		PodCIDRs:          network.Canonical(r.Texts(h.PodCIDRs)),
		ServiceCIDRs:      network.Canonical(r.Texts(h.ServiceCIDRs)),
		DNSDomain:         network.CanonicalDomain(r.Text(h.DNSDomain)),
		CNI:               readCNI(ctx, r, h.CNI),
		KubeProxyDisabled: !r.Truth(h.KubeProxy, true),
		Isolated:          r.Truth(h.Isolated, false),
		AirGapped:         r.Truth(h.AirGapped, false),
		ImageCache:        r.Truth(h.ImageCache, false),
		Registries:        readRegistries(ctx, r, h.Registries),
		Settings:          settings.Read(ctx, r, h),
		Patches:           r.Texts(h.ConfigPatches),
	}

	if !h.Discovery.IsNull() {
		discovery := r.Truth(h.Discovery, true)
		c.Discovery = &discovery
	}

	return c
}

func readCNI(ctx context.Context, r *tf.Reader, value types.Object) machineconfig.CNI {
	cni, ok := tf.Object[CNIModel](ctx, r, value)
	if !ok {
		return machineconfig.CNI{}
	}

	out := machineconfig.CNI{Name: r.Text(cni.Name), URLs: r.Texts(cni.URLs)}

	if flannel, ok := tf.Object[FlannelModel](ctx, r, cni.Flannel); ok {
		out.Flannel = &machineconfig.Flannel{
			ExtraArgs:           r.Texts(flannel.ExtraArgs),
			KubeNetworkPolicies: r.Truth(flannel.KubeNetworkPolicies, false),
		}
	}

	return out
}

func readRegistries(ctx context.Context, r *tf.Reader, value types.Object) machineconfig.Registries {
	registries, ok := tf.Object[registriesModel](ctx, r, value)
	if !ok {
		return machineconfig.Registries{}
	}

	out := machineconfig.Registries{
		Mirrors: map[string]machineconfig.RegistryMirror{},
		Auth:    map[string]machineconfig.RegistryAuth{},
		TLS:     map[string]machineconfig.RegistryTLS{},
	}

	for host, m := range tf.Objects[registryMirrorModel](ctx, r, registries.Mirrors) {
		mirror := machineconfig.RegistryMirror{SkipFallback: r.Truth(m.SkipFallback, false)}
		for _, e := range tf.Listed[registryEndpointModel](ctx, r, m.Endpoints) {
			mirror.Endpoints = append(mirror.Endpoints,
				machineconfig.RegistryEndpoint{URL: r.Text(e.URL), OverridePath: r.Truth(e.OverridePath, false)})
		}

		out.Mirrors[host] = mirror
	}

	for host, a := range tf.Objects[registryAuthModel](ctx, r, registries.Auth) {
		out.Auth[host] = machineconfig.RegistryAuth{
			Username: r.Text(a.Username), Password: r.Text(a.Password),
			Auth: r.Text(a.Auth), IdentityToken: r.Text(a.IdentityToken),
		}
	}

	for host, t := range tf.Objects[registryTLSModel](ctx, r, registries.TLS) {
		out.TLS[host] = machineconfig.RegistryTLS{
			CA: r.Text(t.CA), ClientCertificate: r.Text(t.ClientCertificate), ClientKey: r.Text(t.ClientKey),
			InsecureSkipVerify: r.Truth(t.InsecureSkipVerify, false),
		}
	}

	return out
}
