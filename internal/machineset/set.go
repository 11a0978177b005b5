package machineset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/talosupgrade"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Machine is one machine of a set.
type Machine struct {
	cluster.Wanted

	Group *Group
	Key   string
	// OwnHostname is true when the hostname is given; otherwise the one in Config comes from the key.
	OwnHostname bool
	// AnyHardware is true while the UUID is unknown.
	AnyHardware bool
	// OwnInstall is true when the machine has its own install settings.
	OwnInstall bool
	// OwnVolumes is true when the machine has its own system volumes.
	OwnVolumes bool
	// OwnReset is true when the machine has its own reset settings, and Graceful when these or those of the group ask for
	// a drain.
	OwnReset, Graceful bool
	// OwnImage is true when the machine or its group sets the installer image.
	OwnImage bool
	Meta     Meta
	Config   machineconfig.Machine
	// Facts are those of the finished configuration; nil while it is unknown.
	Facts *machineconfig.Facts
	// Ordinal, image and pod are those of a machine in a container. The image has its tag.
	Ordinal int
	Image   string
	Pod     workload.PodSpec
}

// renderedOnce renders the configurations of a state when they are first needed. ok is false where they cannot be
// known, or where a build with other rules made them.
type renderedOnce func() (files Rendered, ok bool)

// renderedMachine is the configuration of one machine. It is shared, and must not be changed.
type renderedMachine struct {
	machineconfig.Config
	cluster.Configured
}

// Bundle is the secrets of the set, combined with those of state, which its machines may still have.
func (p Set) Bundle() (*pki.Bundle, error) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil || p.FormerSecrets == "" || p.FormerSecrets == p.Secrets {
		return bundle, err
	}

	former, err := pki.Parse([]byte(p.FormerSecrets))
	if err != nil {
		return nil, fmt.Errorf("the secrets in state: %w", err)
	}

	return bundle.Following(former).Knowing(bundle).Knowing(former), nil
}

// Names returns the names of the machines in order.
func (p Set) Names() []string { return slices.Sorted(maps.Keys(p.Machines)) }

// Addresses are the addresses of all machines, in the order of their names.
func (p Set) Addresses() []string {
	var addresses []string

	for _, name := range p.Names() {
		addresses = append(addresses, p.Machines[name].Address)
	}

	return addresses
}

// Each is the set with a change to every machine.
func (p Set) Each(change func(name string, m *Machine)) Set {
	machines := make(map[string]Machine, len(p.Machines))

	for name, m := range p.Machines {
		change(name, &m)
		machines[name] = m
	}

	p.Machines = machines

	return p
}

// controlPlanes are the names of the control planes of the set, in order.
func (p Set) controlPlanes() []string {
	return slices.DeleteFunc(p.Names(), func(name string) bool {
		g := p.Machines[name].Group // machines in an import have no group yet

		return g == nil || g.Role != step.ControlPlane
	})
}

// Spec is the spec for the planner. recorded is the recorded state of the machines and files their wanted
// configurations; both may be empty.
func (p Set) Spec(recorded PriorState, files Rendered) cluster.Spec {
	spec := cluster.Spec{
		Name:             p.Settings.Name,
		Endpoint:         p.Settings.Endpoint,
		Resource:         p.Resource,
		Isolated:         p.Settings.Isolated,
		Removed:          recorded.Removed,
		Unmanaged:        recorded.Unmanaged,
		Machines:         []cluster.Machine{}, // nil before there is a spec
		Pools:            p.budgets(),
		Canary:           p.Changes.Canary,
		Bootstrapped:     Bootstrapped(recorded.Phase),
		NodesBecomeReady: p.nodesBecomeReady(),
		Kubernetes:       p.kubernetes(recorded),
		RestoreFrom:      p.Restore.Asked(recorded.RestoredFrom),
		RestoredAt:       recorded.RestoredAt,
		Rotates:          files.Rotates,
		Shared:           len(p.OtherControlPlanes())+len(p.Others) > 0,
	}

	for _, name := range p.Names() {
		spec.Machines = append(spec.Machines, p.machine(name, recorded, files.Machines[name]))
	}

	return spec
}

// machine is the planner's spec of one machine.
func (p Set) machine(name string, recorded PriorState, configured cluster.Configured) cluster.Machine {
	m, known, on := p.Machines[name], recorded.Machines[name], p.Platform()
	out := cluster.Machine{Name: name, Role: m.Group.Role, Pool: m.Group.Pool, Meta: m.Meta.Keyed(),
		Container: on.Container, Ephemeral: m.Pod.Storage.Ephemeral,
		Wanted: m.Wanted, Installation: p.installation(m, known), Configured: configured, UserVolumes: m.userVolumes()}

	out.UUID = cmp.Or(m.UUID, known.UUID)
	out.Remembered = recorded.remembered(name, out.UUID)

	if on.NamesNode {
		out.NodeName = m.Config.Hostname
	}

	out.InService = out.InService && !on.Identified

	return out
}

// userVolumes are the volumes that the configuration of the machine adds, as far as it is known.
func (m Machine) userVolumes() []string {
	if m.Facts == nil {
		return nil
	}

	return m.Facts.UserVolumes
}

// installation is the wanted Talos of a recorded machine.
func (p Set) installation(m Machine, known step.MachineState) cluster.Installation {
	return cluster.Installation{
		TalosVersion: m.Group.TalosVersion, LeastTalos: machineconfig.LeastTalos(p.Settings.Contract, m.Config.System),
		Schematic: m.schematic(), Installer: m.installer(), Extensions: m.extensionsOf(m.installer()),
		Reinstall: reinstalls(m, known),
		Via:       p.Via(m), AllowDowngrade: p.Changes.AllowDowngrade, InstallTarget: m.installTarget(),
	}
}

// budgets are how many workers of each pool may be out of service at once.
func (p Set) budgets() map[string]cluster.Budget {
	pools := map[string]cluster.Budget{}

	for _, g := range p.Groups {
		if budget, ok := ReadBudget(g.MaxUnavailable); ok && g.Role == step.Worker {
			pools[g.Pool] = budget
		}
	}

	return pools
}

// reinstalls reports whether a machine was installed from another image than the wanted one. Any image is right if
// neither image nor schematic is configured. The tag is ignored, because versions are compared with the running ones.
func reinstalls(m Machine, known step.MachineState) bool {
	given, own := m.installImage()
	wanted, err := image.ParseReference(given)
	installed, unknown := image.ParseReference(known.Installer)

	if known.Installer == "" || !own && m.schematic() == "" || err != nil || unknown != nil ||
		known.Platform == cluster.PlatformContainer {
		return false
	}

	wanted.Tag, installed.Tag = "", ""

	return wanted != installed
}

// schematic is the wanted schematic of a machine; empty when any is right. An image from the user overrides it, as in
// the installation.
func (m Machine) schematic() string {
	if _, own := m.installImage(); !own {
		return m.Group.Schematic
	}

	reference, _ := m.ownInstaller()
	installer, _ := reference.Installer()

	return installer.Schematic
}

// Via is the releases that a machine may pass on the path to its version, with their images.
func (p Set) Via(m Machine) []cluster.Release {
	version, err := machineconfig.ParseTalosVersion(m.Group.TalosVersion)
	if err != nil {
		return nil
	}

	var releases []cluster.Release

	for _, v := range talosupgrade.Releases(version, p.Changes.Via) {
		if installer := m.installerOf(v.String()); installer != "" {
			releases = append(releases, cluster.Release{Version: v.String(), Installer: installer})
		}
	}

	return releases
}

// installer is the image of the wanted Talos: the installer, or the image of a container.
func (m Machine) installer() string {
	reference, _ := m.installImage()

	return cmp.Or(m.Image, reference)
}

// installerOf is the image that installs another version than the wanted one; empty when it is unknown.
func (m Machine) installerOf(version string) string {
	if reference, err := image.ParseReference(m.Image); m.Image != "" && err == nil {
		return reference.WithTag(version).String()
	}

	if _, own := m.installImage(); own {
		reference, ok := m.ownInstaller()
		if !ok {
			return ""
		}

		return reference.WithTag(version).String()
	}

	reference, err := image.Installer{
		Version: version, Schematic: m.Group.Schematic, Platform: m.Group.Platform, SecureBoot: m.Group.SecureBoot,
	}.Reference()
	if err != nil {
		return ""
	}

	return reference
}

// Rendered is the configurations of a set.
type Rendered struct {
	Configs map[string][]byte
	// Machines are their contents.
	Machines map[string]cluster.Configured
	// Rotates is true if any of their keys was ever rotated.
	Rotates bool
	// Disks are those that they install Talos on.
	Disks map[string]machineconfig.InstallDisk
}

// Render makes the configuration of every machine. The error has a FieldError for every error in an attribute.
func (p Set) Render(bundle *pki.Bundle) (Rendered, error) {
	out := Rendered{Configs: map[string][]byte{}, Machines: map[string]cluster.Configured{}, Rotates: bundle.Rotates(),
		Disks: map[string]machineconfig.InstallDisk{}}

	return out, p.renderMachines(bundle, func(name string, config renderedMachine) {
		out.Configs[name], out.Machines[name] = config.Bytes, config.Configured
		out.Disks[name] = config.Facts.Disk.ForTalos(p.Machines[name].Group.TalosVersion)
	})
}

// filesOfCreate is the configurations of a create, as far as they affect Kubernetes. They need no secrets.
func (p Set) filesOfCreate() Rendered {
	files := Rendered{Configs: map[string][]byte{}, Machines: map[string]cluster.Configured{}}

	err := p.renderMachines(nil, func(name string, m renderedMachine) {
		files.Configs[name], files.Machines[name] = m.Bytes, cluster.Configured{Images: m.Images}
	})
	if err != nil || p.Unknown.Has(UnknownConfiguration) {
		return Rendered{} // the validation reports the error
	}

	return files
}

// Configurations is Render with the secrets of the set.
func (p Set) Configurations() (Rendered, error) {
	bundle, err := p.Bundle()
	if err != nil {
		return Rendered{}, err
	}

	return p.Render(bundle)
}

// check checks the configurations of a set while its secrets are unknown or not needed.
func (p Set) check() (warnings finding.List, err error) {
	var (
		problems []error
		nodes    = map[string]string{}
	)

	err = p.renderMachines(nil, func(name string, m renderedMachine) {
		warnings = p.withIneffective(warnings, name, m.Ineffective)

		node := m.Facts.NodeName
		if other, taken := nodes[node]; taken && node != "" {
			problems = append(problems, p.sameNode(name, other, node))
		}

		nodes[node] = name
	})

	return warnings, errors.Join(append(problems, err)...)
}

// withIneffective adds warnings about patches and settings without effect. Several machines share one warning.
func (p Set) withIneffective(
	warnings finding.List, machine string, ineffective []*machineconfig.FieldError,
) finding.List {
	for _, field := range ineffective {
		found := *field
		at := p.locate(&found, p.groupOf(machine), machine)
		warning := settingIgnored.At(at, finding.Args{"found": found.Found,
			"reason": finding.Sentences(cmp.Or(found.Allowed, "it has no effect there")), "fix": finding.Sentences(found.Fix)})

		if !slices.ContainsFunc(warnings, func(f finding.Finding) bool {
			return f.At.String() == at.String() && f.Detail == warning.Detail
		}) {
			warnings.Append(warning)
		}
	}

	return warnings
}

// Unpinned is a set without maintenance mode fingerprints. A machine that was reset has a new one, gets nothing there
// any more, and must not look like a foreign machine.
func (p Set) Unpinned() Set {
	return p.Each(func(_ string, m *Machine) { m.Fingerprint = "" })
}
