package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// MachineSet is machines of one cluster: what a resource owns, in plain values. A pool of a
// plan may have unknown values in it, which read as zero.
type MachineSet struct {
	// Object names the resource in messages.
	Object string
	// inHandle is true when the settings of the cluster come from a handle.
	inHandle bool

	// groups are the machines as the user wrote them down, control planes first.
	groups    []*Group
	Settings  machineconfig.Cluster
	Secrets   string
	Endpoints []string
	Machines  map[string]SetMachine
	// single is what makes a pool of one of a resource that is one machine; nil for
	// resources that list machines.
	single *single
	// changes is how machines that run are changed.
	changes changes
	// restore is the snapshot that etcd is to begin with.
	restore restoration
	// Host is the host cluster of machines in containers; nil on metal.
	Host *HostSettings
	// declared is what decides whether they are in containers, as it was written down.
	declared declared

	// Unknown is true when any value that shapes a configuration, other than the
	// secrets, is unknown.
	Unknown bool
	// sealed is true when the secrets are not known yet.
	sealed bool
	// unnamed is true when the machines themselves are not all known: which there
	// are, where they answer, what is installed on them.
	unnamed bool
}

// SetMachine is one machine of a pool.
type SetMachine struct {
	Group       *Group
	key         string
	Address     string
	uuid        string
	fingerprint string
	// ownInstall is true when the machine has install settings of its own.
	ownInstall bool
	// ownImage is true when the installer image is given, by the machine or its group.
	ownImage bool
	meta     metaValues
	config   machineconfig.Machine
	// ordinal, image and pod are those of a machine in a container. The image has its tag.
	ordinal int
	image   string
	Pod     workload.PodSpec
}

// Pool reads the machines and settings of a model. own is what it says of the host cluster, and g what is known
// of its one group beside the model.
func (m machineSetModel) Pool(ctx context.Context, handle clusterhandle.HandleModel, own types.Object, g *Group) (MachineSet, diag.Diagnostics) {
	g.machinesModel, g.At, g.TalosVersion, g.versionAt = m.machinesModel, finding.Path{}, m.TalosVersion, finding.Root("talos_version")

	p, diags := machineSetOf(ctx, handle, own, g)
	m.change(ctx, &p)

	return p, diags
}

// machineSetOf reads groups of machines in one cluster. own is what their resource says of the host cluster.
func machineSetOf(ctx context.Context, handle clusterhandle.HandleModel, own types.Object, groups ...*Group) (MachineSet, diag.Diagnostics) {
	settings, named := &tf.Reader{}, &tf.Reader{}

	p := MachineSet{
		groups:    groups,
		Settings:  handle.Settings(ctx, settings),
		Secrets:   handle.Secrets.ValueString(),
		Endpoints: (&tf.Reader{}).Texts(handle.TalosEndpoints),
		Machines:  map[string]SetMachine{},
		Host:      HostOf(named, settings, handle, own, groups),
		declared:  declared{mode: handle.Mode, modeAt: finding.Root("cluster").AtName("mode"), Host: own, endpoint: handle.Endpoint},
	}
	p.Settings.Container = p.Host != nil

	if p.Host != nil {
		named.Text(handle.Name) // machines are called by it
	}

	for _, g := range groups {
		named.Text(g.TalosVersion)
		settings.Text(g.maxUnavailable)

		if p.Host != nil {
			p.addReplicas(ctx, named, settings, g)

			continue
		}

		for key, machine := range tf.Objects[machineModel](ctx, named, g.Machines) {
			_, ownImage := g.installOf(ctx, named, machine)

			p.Machines[g.Prefix+key] = SetMachine{
				Group:       g,
				key:         key,
				Address:     named.Text(machine.Address),
				uuid:        settings.Text(machine.UUID),
				fingerprint: settings.Text(machine.Fingerprint),
				ownInstall:  !machine.Install.IsNull(),
				ownImage:    ownImage,
				meta:        readMeta(named, settings, machine.Meta),
				config:      g.machine(ctx, settings, machine),
			}
		}
	}

	p.unnamed = named.Unknown
	p.Unknown = named.Unknown || settings.Unknown
	p.sealed = handle.Secrets.IsUnknown()

	return p, append(settings.Diags, named.Diags...)
}

// names returns the names of the machines in order.
func (p MachineSet) names() []string { return sortedNames(p.Machines) }

// Spec is what the planner is told. recorded is what state knows of the machines
// and files what is wanted of their configuration; both may be empty.
func (p MachineSet) Spec(recorded PriorState, files Rendered) cluster.Spec {
	spec := cluster.Spec{
		Name:             p.Settings.Name,
		Endpoint:         p.Settings.Endpoint,
		Joins:            p.single != nil && !p.single.bootstrap,
		Removed:          recorded.removed,
		Pools:            map[string]cluster.Budget{},
		Bootstrapped:     bootstrapped(recorded.phase),
		NodesBecomeReady: p.Settings.CNI.Name != machineconfig.CNINone,
		Kubernetes:       p.kubernetes(recorded.manifests),
		RestoreFrom:      p.restore.asked(recorded.restored.From.ValueString()),
		RestoredAt:       recorded.restored.when(),
	}

	for _, g := range p.groups {
		if budget, ok := readBudget(g.maxUnavailable.ValueString()); ok && g.Role == cluster.Worker {
			spec.Pools[g.Pool] = budget
		}
	}

	for _, name := range p.names() {
		m, known := p.Machines[name], recorded.Machines[name]

		uuid := m.uuid
		if uuid == "" {
			uuid = known.UUID
		}

		// The name was recorded for the recorded hardware; it says nothing about another.
		node := known.NodeName
		if !strings.EqualFold(uuid, known.UUID) {
			node = ""
		}

		if p.Host != nil {
			node = m.config.Hostname
		}

		spec.Machines = append(spec.Machines, cluster.Machine{
			Name: name, Role: m.Group.Role, Address: m.Address, UUID: uuid, ConfigDigest: files.Digests[name],
			Images: files.Images[name], Pool: m.Group.Pool, PreviousAddress: recorded.moved[name],
			TalosVersion: m.Group.TalosVersion.ValueString(), Schematic: m.schematic(), Installer: m.installer(),
			Reinstall: reinstalls(m, known),
			Container: p.Host != nil, Replace: recorded.Replace[name], Ephemeral: m.Pod.Storage.Ephemeral,
			Via: p.via(m), AllowDowngrade: p.changes.allowDowngrade,
			InstallTarget: installTarget(m.config.Install),
			NodeName:      node, MemberID: lostMember(known, recorded.members[name]), Joined: recorded.members[name] != "", Meta: m.meta.keyed(),
		})
	}

	return spec
}

// reinstalls reports whether a machine was installed from another image than is wanted.
// Without an image and a schematic of one's own any is right. The tag is left out of it:
// versions are compared with what runs.
func reinstalls(m SetMachine, known cluster.MachineState) bool {
	wanted, err := image.ParseReference(m.config.Install.Image)
	installed, unknown := image.ParseReference(known.Installer)

	if known.Installer == "" || !m.ownImage && m.schematic() == "" || err != nil || unknown != nil || known.Platform == cluster.PlatformContainer {
		return false
	}

	wanted.Tag, installed.Tag = "", ""

	return wanted != installed
}

// lostMember is the member that etcd still has of a machine which lost its configuration,
// as far as state knows.
func lostMember(known cluster.MachineState, member string) string {
	if known.Access == cluster.Member {
		return ""
	}

	return member
}

// schematic is the one that is wanted of a machine; empty when any is right. The image
// that a user names has the last word, as it has in the installation.
func (m SetMachine) schematic() string {
	if !m.ownImage {
		return m.Group.Schematic.ValueString()
	}

	reference, err := image.ParseReference(m.config.Install.Image)
	if err != nil {
		return ""
	}

	installer, _ := reference.Installer()

	return installer.Schematic
}

// via is the releases that a machine may have to pass on its way to its version, with
// their images.
func (p MachineSet) via(m SetMachine) []cluster.Release {
	version, err := machineconfig.ParseTalosVersion(m.Group.TalosVersion.ValueString())
	if err != nil {
		return nil
	}

	var releases []cluster.Release

	for _, v := range machineconfig.Releases(version, p.changes.via) {
		if installer := m.installerOf(v.String()); installer != "" {
			releases = append(releases, cluster.Release{Version: v.String(), Installer: installer})
		}
	}

	return releases
}

// installer is the image of the wanted Talos: what installs it, or what a container is made of.
func (m SetMachine) installer() string { return cmp.Or(m.image, m.config.Install.Image) }

// installerOf is the image that installs another version on a machine than the one that
// is wanted; empty when it cannot be named.
func (m SetMachine) installerOf(version string) string {
	if reference, err := image.ParseReference(m.image); m.image != "" && err == nil {
		return reference.WithTag(version).String()
	}

	if m.ownImage {
		reference, err := image.ParseReference(m.config.Install.Image)
		if err != nil {
			return ""
		}

		return reference.WithTag(version).String()
	}

	reference, err := image.Installer{
		Version: version, Schematic: m.Group.Schematic.ValueString(), Platform: m.Group.Platform.ValueString(),
	}.Reference()
	if err != nil {
		return ""
	}

	return reference
}

// Rendered is the configurations of a pool.
type Rendered struct {
	configs map[string][]byte
	Digests map[string]string
	// Images are those of Kubernetes in them.
	Images map[string]cluster.Images
}

// render makes the configuration of every machine. The error holds a FieldError
// for every mistake that belongs to an attribute.
func (p MachineSet) render(bundle *pki.Bundle) (Rendered, error) {
	out := Rendered{configs: map[string][]byte{}, Digests: map[string]string{}, Images: map[string]cluster.Images{}}

	generator, err := machineconfig.NewGenerator(p.Settings, bundle)
	if err != nil {
		return out, p.problems("", err)
	}

	return out, p.renderMachines(generator, func(name string, config renderedMachine) {
		out.configs[name], out.Digests[name], out.Images[name] = config.Bytes, config.Digest, config.Images
	})
}

// filesOfCreate is the configurations of a create, as far as they say anything of
// Kubernetes. They need no secrets.
func (p MachineSet) filesOfCreate() Rendered {
	files := Rendered{configs: map[string][]byte{}, Images: map[string]cluster.Images{}}

	generator, err := machineconfig.NewChecker(p.Settings)
	if err != nil || p.Unknown {
		return Rendered{} // the validation says what is wrong
	}

	if p.renderMachines(generator, func(name string, m renderedMachine) { files.configs[name], files.Images[name] = m.Bytes, m.Images }) != nil {
		return Rendered{}
	}

	return files
}

// configurations is render with the secrets of the pool.
func (p MachineSet) configurations() (Rendered, error) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return Rendered{}, err
	}

	return p.render(bundle)
}

// check reports what is wrong with the configurations of a pool, while its secrets
// are not known or not needed.
func (p MachineSet) check() error {
	generator, err := machineconfig.NewChecker(p.Settings)
	if err != nil {
		return p.problems("", err)
	}

	return p.renderMachines(generator, func(string, renderedMachine) {})
}

// renderedMachine is the configuration of one machine, and the images of Kubernetes in it.
type renderedMachine struct {
	machineconfig.Config

	Images cluster.Images
}

// renderMachines renders the machines in the order of their names. Machines that
// are configured alike get the same configuration, so each kind is made once.
func (p MachineSet) renderMachines(generator *machineconfig.Generator, use func(string, renderedMachine)) error {
	var problems []error

	made := map[string]renderedMachine{}

	for _, name := range p.names() {
		kind, err := json.Marshal(p.Machines[name].config)
		if err != nil {
			return fmt.Errorf("compare machine %s with others: %w", name, err)
		}

		config, ok := made[string(kind)]
		if !ok {
			config.Config, err = generator.Machine(p.Machines[name].config)
			if err == nil {
				config.Images, err = ImagesIn(config.Bytes)
			}

			if err != nil {
				problems = append(problems, p.problems(name, err))

				continue
			}

			made[string(kind)] = config
		}

		use(name, config)
	}

	return errors.Join(problems...)
}
