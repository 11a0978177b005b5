package machineset

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
)

// Decisions about machines read their finished configurations, because a patch has the same effect as an attribute.

// WithFacts is a set whose machines have the facts of their finished configurations. While a value that shapes a
// configuration is unknown they have none, and the attributes are used instead. An invalid configuration has none
// either: the validation reports it.
func (p Set) WithFacts() Set {
	if p.Unknown.Has(UnknownConfiguration) || len(p.Machines) == 0 {
		return p
	}

	bundle, err := p.Bundle()
	if err != nil {
		bundle = nil
	}

	machines := maps.Clone(p.Machines)

	_ = p.renderMachines(bundle, func(name string, rendered renderedMachine) {
		m := machines[name]
		m.Facts = &rendered.Facts
		machines[name] = m
	})

	p.Machines = machines
	p.plane = p.planeFacts()

	return p
}

// planeFacts are the cluster facts of the control planes: those of the set, or of one made from the cluster settings.
// They are nil where these are invalid.
func (p Set) planeFacts() *machineconfig.Facts {
	for _, name := range p.controlPlanes() {
		if facts := p.Machines[name].Facts; facts != nil {
			return facts
		}
	}

	return p.factsWith(nil)
}

// PodNetwork is the CNI of a cluster with these settings whose control planes have these patches. It is empty where
// they are invalid.
func PodNetwork(settings machineconfig.Cluster, patches []string) string {
	if facts := (Set{Settings: settings}).factsWith(patches); facts != nil {
		return facts.CNI
	}

	return ""
}

// factsWith are the facts of a control plane with the cluster settings and these patches; nil where they are invalid.
func (p Set) factsWith(patches []string) *machineconfig.Facts {
	r, err := p.renderer(nil)
	if err != nil {
		return nil
	}

	// The disk and the secrets of a control plane do not affect these facts.
	plane, err := r.render(Machine{Config: machineconfig.Machine{
		Role: machineconfig.ControlPlane, Install: machineconfig.Install{Disk: "/dev/sda"}, PoolPatches: patches,
	}})
	if err != nil {
		return nil
	}

	return &plane.Facts
}

// networks are the pod and service networks of the control planes. While those are unknown, they come from the
// attributes.
func (p Set) networks() (pods, services []netip.Prefix) {
	p.Settings.Container = p.Platform().Container

	plane := p.plane
	if plane == nil && !p.Unknown.Has(UnknownConfiguration) {
		plane = p.planeFacts()
	}

	if plane != nil && len(plane.PodCIDRs) > 0 && len(plane.ServiceCIDRs) > 0 {
		return plane.PodCIDRs, plane.ServiceCIDRs
	}

	ofPods, ofServices := machineconfig.DefaultNetworks(p.Settings.Container)

	return networksOr(p.Settings.PodCIDRs, ofPods), networksOr(p.Settings.ServiceCIDRs, ofServices)
}

// nodesBecomeReady reports whether Talos installs a pod network, without which no node becomes Ready.
func (p Set) nodesBecomeReady() bool {
	if p.plane != nil {
		return p.plane.CNI != machineconfig.CNINone
	}

	return p.Settings.CNI.Name != machineconfig.CNINone
}

// OtherNetworks reports whether a cluster would get other networks, or another domain, than it was created with.
// While the configurations are unknown, the attributes decide.
func (p Set) OtherNetworks(prior Set) bool {
	now, before := p.plane, prior.plane
	if now == nil || before == nil {
		return p.otherWrittenNetworks(prior)
	}

	return !slices.Equal(now.PodCIDRs, before.PodCIDRs) || !slices.Equal(now.ServiceCIDRs, before.ServiceCIDRs) ||
		!network.SameDomain(now.DNSDomain, before.DNSDomain, constants.DefaultDNSDomain)
}

// outsideOfNetworks checks that a machine has an address of its own. Talos does not use an address in a pod or
// service network as a machine's address (Talos 1.13, controllers/k8s/address_filter.go), and a virtual IP moves
// between control planes.
func (p Set) outsideOfNetworks(at finding.Path, host string) finding.List {
	address, err := netip.ParseAddr(host)
	if err != nil || p.plane == nil {
		return nil
	}

	if name, prefix, inside := p.plane.NetworkOf(address); inside {
		return finding.List{addressInNetwork.At(at, finding.Args{"address": host, "network": name, "prefix": prefix})}
	}

	if slices.Contains(p.plane.VirtualIPs, address.Unmap()) {
		return finding.List{addressIsVirtual.At(at, finding.Args{"address": host})}
	}

	return nil
}

// installImage is the installer image of a machine, and own is true where an attribute or a patch sets it.
func (m Machine) installImage() (reference string, own bool) {
	if m.Facts == nil || m.Facts.Installer == "" || m.Facts.Installer == m.Config.Install.Image {
		return m.Config.Install.Image, m.OwnImage
	}

	return m.patchedImage(m.Facts.Installer), true
}

// patchedImage is the installer image of a patch at the machine's version: another version keeps the registry, the
// schematic and the flavor in the patch. An image with another tag, or with a digest, stays as it is.
func (m Machine) patchedImage(given string) string {
	reference, err := image.ParseReference(given)
	if _, versioned := machineconfig.ReadTalosVersion(reference.Tag); err != nil || !versioned || reference.Digest != "" {
		return given
	}

	version, err := machineconfig.ParseTalosVersion(m.Group.TalosVersion)
	if err != nil {
		return given
	}

	return reference.WithTag(version.String()).String()
}

// installTarget is how an operation names the disk that Talos is installed on.
func (m Machine) installTarget() string {
	if m.Facts != nil && !m.Facts.Disk.Is(m.Config.Install) {
		return m.Facts.Disk.String()
	}

	return installTarget(m.Config.Install)
}

// ownInstaller reads the installer image of an attribute or a patch; ok is false where there is none, or none that
// can be read.
func (m Machine) ownInstaller() (reference image.Reference, ok bool) {
	given, own := m.installImage()
	if !own {
		return image.Reference{}, false
	}

	reference, err := image.ParseReference(given)

	return reference, err == nil
}
