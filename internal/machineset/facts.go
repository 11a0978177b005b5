package machineset

import (
	"cmp"
	"maps"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Decisions about machines read what their finished configurations say, because a patch says the same as an attribute.

// WithFacts is a set whose machines have the facts of their finished configurations. While a value that shapes a
// configuration is unknown they have none, and the attributes have to do. A configuration with a mistake has none
// either: the validation reports it.
func (p Set) WithFacts() Set {
	if p.Unknown || len(p.Machines) == 0 {
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
	p.cni = p.podNetwork()

	return p
}

// podNetwork is the pod network that Talos installs: what the control planes of the set say, or a control plane that the
// settings of the cluster make. It is empty where those have a mistake.
func (p Set) podNetwork() string {
	for _, name := range p.controlPlanes() {
		if facts := p.Machines[name].Facts; facts != nil {
			return facts.CNI
		}
	}

	// Neither the disk nor the secrets of a control plane say anything of its pod network.
	p.Machines = map[string]Machine{"": {Config: machineconfig.Machine{
		Role: machineconfig.ControlPlane, Install: machineconfig.Install{Disk: "/dev/sda"},
	}}}

	var name string

	_ = p.renderMachines(nil, func(_ string, plane renderedMachine) { name = plane.Facts.CNI })

	return name
}

// nodesBecomeReady is whether Talos installs a pod network, without which no node becomes Ready.
func (p Set) nodesBecomeReady() bool {
	return cmp.Or(p.cni, p.Settings.CNI.Name) != machineconfig.CNINone
}

// installImage is the installer image of a machine, and own is true where an attribute or a patch gives it.
func (m Machine) installImage() (reference string, own bool) {
	if m.Facts == nil || m.Facts.Installer == "" || m.Facts.Installer == m.Config.Install.Image {
		return m.Config.Install.Image, m.OwnImage
	}

	return m.patchedImage(m.Facts.Installer), true
}

// patchedImage is an installer image of a patch at the version of the machine: another version keeps the registry, the
// schematic and the flavor that the patch names. An image with another tag, or with a digest, stays as it is.
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

// installTarget is the disk that Talos is installed on, in the words of an operation.
func (m Machine) installTarget() string {
	target := installTarget(m.Config.Install)
	if target == "" && m.Facts != nil {
		return m.Facts.Disk
	}

	return target
}

// ownInstaller reads the installer image that an attribute or a patch gives; ok is false where there is none, or none
// that can be read.
func (m Machine) ownInstaller() (reference image.Reference, ok bool) {
	given, own := m.installImage()
	if !own {
		return image.Reference{}, false
	}

	reference, err := image.ParseReference(given)

	return reference, err == nil
}
