package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// settings reads what a handle says about the configuration of every machine.
func (h handleModel) settings(ctx context.Context, r *reader) machineconfig.Cluster {
	c := machineconfig.Cluster{
		Name:              r.text(h.Name),
		Endpoint:          r.text(h.Endpoint),
		KubernetesVersion: r.text(h.KubernetesVersion),
		Contract:          r.text(h.VersionContract),
		CertSANs:          r.texts(h.CertSANs),
		PodCIDRs:          r.texts(h.PodCIDRs),
		ServiceCIDRs:      r.texts(h.ServiceCIDRs),
		DNSDomain:         r.text(h.DNSDomain),
		CNI:               readCNI(ctx, r, h.CNI),
		KubeProxyDisabled: !r.truth(h.KubeProxy, true),
		AirGapped:         r.truth(h.AirGapped, false),
		ImageCache:        r.truth(h.ImageCache, false),
		Registries:        readRegistries(ctx, r, h.Registries),
		Patches:           r.texts(h.ConfigPatches),
	}

	if !h.Discovery.IsNull() {
		discovery := r.truth(h.Discovery, true)
		c.Discovery = &discovery
	}

	return c
}

func readCNI(ctx context.Context, r *reader, value types.Object) machineconfig.CNI {
	cni, ok := object[cniModel](ctx, r, value)
	if !ok {
		return machineconfig.CNI{}
	}

	out := machineconfig.CNI{Name: r.text(cni.Name), URLs: r.texts(cni.URLs)}

	if flannel, ok := object[flannelModel](ctx, r, cni.Flannel); ok {
		out.Flannel = &machineconfig.Flannel{
			ExtraArgs:           r.texts(flannel.ExtraArgs),
			KubeNetworkPolicies: r.truth(flannel.KubeNetworkPolicies, false),
		}
	}

	return out
}

func readRegistries(ctx context.Context, r *reader, value types.Object) machineconfig.Registries {
	registries, ok := object[registriesModel](ctx, r, value)
	if !ok {
		return machineconfig.Registries{}
	}

	out := machineconfig.Registries{
		Mirrors: map[string]machineconfig.RegistryMirror{},
		Auth:    map[string]machineconfig.RegistryAuth{},
		TLS:     map[string]machineconfig.RegistryTLS{},
	}

	for host, m := range objects[registryMirrorModel](ctx, r, registries.Mirrors) {
		mirror := machineconfig.RegistryMirror{SkipFallback: r.truth(m.SkipFallback, false)}
		for _, e := range listed[registryEndpointModel](ctx, r, m.Endpoints) {
			mirror.Endpoints = append(mirror.Endpoints,
				machineconfig.RegistryEndpoint{URL: r.text(e.URL), OverridePath: r.truth(e.OverridePath, false)})
		}

		out.Mirrors[host] = mirror
	}

	for host, a := range objects[registryAuthModel](ctx, r, registries.Auth) {
		out.Auth[host] = machineconfig.RegistryAuth{
			Username: r.text(a.Username), Password: r.text(a.Password),
			Auth: r.text(a.Auth), IdentityToken: r.text(a.IdentityToken),
		}
	}

	for host, t := range objects[registryTLSModel](ctx, r, registries.TLS) {
		out.TLS[host] = machineconfig.RegistryTLS{
			CA: r.text(t.CA), ClientCertificate: r.text(t.ClientCertificate), ClientKey: r.text(t.ClientKey),
			InsecureSkipVerify: r.truth(t.InsecureSkipVerify, false),
		}
	}

	return out
}

// machine reads the settings of one machine, with those of its group filled in.
func (g *group) machine(ctx context.Context, r *reader, one machineModel) machineconfig.Machine {
	install, _ := g.installOf(ctx, r, one)

	return machineconfig.Machine{
		Role:        machineconfig.Role(g.role),
		Mode:        machineconfig.Metal,
		Hostname:    r.text(one.Hostname),
		Install:     install,
		PoolPatches: r.texts(g.ConfigPatches),
		Patches:     r.texts(one.ConfigPatches),
	}
}

// installOf merges the install settings of a machine over those of its group. A
// disk and a disk selector say the same thing, so the machine's own choice of one
// replaces the pool's of the other. ownImage tells that the installer image was given.
func (g *group) installOf(ctx context.Context, r *reader, one machineModel) (install machineconfig.Install, ownImage bool) {
	pool, _ := object[installModel](ctx, r, g.Install)
	own, _ := object[installModel](ctx, r, one.Install)

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
		Disk:            r.text(merged.Disk),
		Wipe:            r.truth(merged.Wipe, false),
		Image:           g.installer(r, merged.Image),
		ExtraKernelArgs: r.texts(merged.ExtraKernelArgs),
	}

	if s, ok := object[diskSelectorModel](ctx, r, merged.DiskSelector); ok {
		install.DiskSelector = &machineconfig.DiskSelector{
			Size: r.text(s.Size), Model: r.text(s.Model), Serial: r.text(s.Serial), Modalias: r.text(s.Modalias),
			UUID: r.text(s.UUID), WWID: r.text(s.WWID), Type: r.text(s.Type), BusPath: r.text(s.BusPath),
		}
	}

	return install, !merged.Image.IsNull()
}

// installer names the image that is installed. What makes it up is checked where
// the values are, so an image that cannot be named yet is left empty here.
func (g *group) installer(r *reader, given types.String) string {
	if !given.IsNull() {
		return r.text(given)
	}

	reference, err := image.Installer{
		Version: r.text(g.talosVersion), Schematic: r.text(g.Schematic), Platform: r.text(g.Platform),
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

	for _, property := range []struct{ name, value string }{
		{"size", i.DiskSelector.Size}, {"type", i.DiskSelector.Type}, {"model", i.DiskSelector.Model},
		{"serial", i.DiskSelector.Serial}, {"modalias", i.DiskSelector.Modalias}, {"uuid", i.DiskSelector.UUID},
		{"wwid", i.DiskSelector.WWID}, {"bus path", i.DiskSelector.BusPath},
	} {
		if property.value != "" {
			parts = append(parts, fmt.Sprintf("%s %s", property.name, property.value))
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
