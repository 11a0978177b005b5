package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Settings reads what a handle says about the configuration of every machine.
func (h HandleModel) Settings(ctx context.Context, r *tf.Reader) machineconfig.Cluster {
	c := machineconfig.Cluster{
		Name:              r.Text(h.Name),
		Endpoint:          r.Text(h.Endpoint),
		KubernetesVersion: r.Text(h.KubernetesVersion),
		Contract:          r.Text(h.VersionContract),
		CertSANs:          r.Texts(h.CertSANs),
		PodCIDRs:          r.Texts(h.PodCIDRs),
		ServiceCIDRs:      r.Texts(h.ServiceCIDRs),
		DNSDomain:         r.Text(h.DNSDomain),
		CNI:               readCNI(ctx, r, h.CNI),
		KubeProxyDisabled: !r.Truth(h.KubeProxy, true),
		AirGapped:         r.Truth(h.AirGapped, false),
		ImageCache:        r.Truth(h.ImageCache, false),
		Registries:        readRegistries(ctx, r, h.Registries),
		Patches:           r.Texts(h.ConfigPatches),
	}

	if !h.Discovery.IsNull() {
		discovery := r.Truth(h.Discovery, true)
		c.Discovery = &discovery
	}

	return c
}

func readCNI(ctx context.Context, r *tf.Reader, value types.Object) machineconfig.CNI {
	cni, ok := tf.Object[cniModel](ctx, r, value)
	if !ok {
		return machineconfig.CNI{}
	}

	out := machineconfig.CNI{Name: r.Text(cni.Name), URLs: r.Texts(cni.URLs)}

	if flannel, ok := tf.Object[flannelModel](ctx, r, cni.Flannel); ok {
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

// machine reads the settings of one machine, with those of its group filled in.
func (g *Group) machine(ctx context.Context, r *tf.Reader, one machineModel) machineconfig.Machine {
	install, _ := g.installOf(ctx, r, one)

	return machineconfig.Machine{
		Role:        machineconfig.Role(g.Role),
		Mode:        machineconfig.Metal,
		Hostname:    r.Text(one.Hostname),
		Install:     install,
		PoolPatches: r.Texts(g.ConfigPatches),
		Patches:     r.Texts(one.ConfigPatches),
	}
}

// installOf merges the install settings of a machine over those of its group. A
// disk and a disk selector say the same thing, so the machine's own choice of one
// replaces the pool's of the other. ownImage tells that the installer image was given.
func (g *Group) installOf(ctx context.Context, r *tf.Reader, one machineModel) (install machineconfig.Install, ownImage bool) {
	pool, _ := tf.Object[installModel](ctx, r, g.Install)
	own, _ := tf.Object[installModel](ctx, r, one.Install)

	merged := pool
	if !own.Disk.IsNull() || !own.DiskSelector.IsNull() {
		merged.Disk, merged.DiskSelector = own.Disk, own.DiskSelector
	}

	if !own.Wipe.IsNull() {
		merged.Wipe = own.Wipe
	}

	if !own.Image.IsNull() {
		merged.Image = own.Image
	}

	if !own.ExtraKernelArgs.IsNull() {
		merged.ExtraKernelArgs = own.ExtraKernelArgs
	}

	install = machineconfig.Install{
		Disk:            r.Text(merged.Disk),
		Wipe:            r.Truth(merged.Wipe, false),
		Image:           g.installer(r, merged.Image),
		ExtraKernelArgs: r.Texts(merged.ExtraKernelArgs),
	}

	if s, ok := tf.Object[diskSelectorModel](ctx, r, merged.DiskSelector); ok {
		install.DiskSelector = &machineconfig.DiskSelector{
			Size: r.Text(s.Size), Model: r.Text(s.Model), Serial: r.Text(s.Serial), Modalias: r.Text(s.Modalias),
			UUID: r.Text(s.UUID), WWID: r.Text(s.WWID), Type: r.Text(s.Type), BusPath: r.Text(s.BusPath),
		}
	}

	return install, !merged.Image.IsNull()
}

// installer names the image that is installed. What makes it up is checked where
// the values are, so an image that cannot be named yet is left empty here.
func (g *Group) installer(r *tf.Reader, given types.String) string {
	if !given.IsNull() {
		return r.Text(given)
	}

	reference, err := image.Installer{
		Version: r.Text(g.TalosVersion), Schematic: r.Text(g.Schematic), Platform: r.Text(g.Platform),
	}.Reference()
	if err != nil {
		return ""
	}

	return reference
}

// installTarget names the disk as a person would.
func installTarget(i machineconfig.Install) string {
	if i.DiskSelector == nil {
		return i.Disk
	}

	var parts []string

	for _, property := range []struct{ Name, Value string }{
		{"size", i.DiskSelector.Size}, {"type", i.DiskSelector.Type}, {"model", i.DiskSelector.Model},
		{"serial", i.DiskSelector.Serial}, {"modalias", i.DiskSelector.Modalias}, {"uuid", i.DiskSelector.UUID},
		{"wwid", i.DiskSelector.WWID}, {"bus path", i.DiskSelector.BusPath},
	} {
		if property.Value != "" {
			parts = append(parts, fmt.Sprintf("%s %s", property.Name, property.Value))
		}
	}

	return "the disk with " + strings.Join(parts, ", ")
}

// sortedNames returns the names of machines in order.
func sortedNames[T any](machines map[string]T) []string {
	names := make([]string, 0, len(machines))
	for name := range machines {
		names = append(names, name)
	}

	slices.Sort(names)

	return names
}
