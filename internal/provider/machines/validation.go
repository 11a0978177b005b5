package machines

import (
	"errors"
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// supportedTalos is the range of Talos versions, for texts.
const supportedTalos = "v1.10 to " + newestTalos

// newestTalos is the newest minor version that is known.
const newestTalos = "v1.13"

// validate checks everything that can be checked without a machine and as far as
// it is known. All mistakes are reported at once.
func (p MachineSet) validate() finding.List {
	var diags finding.List

	if p.declared.senseless() {
		return nil // which the attribute itself says; nothing else can be told without it
	}

	diags.Append(p.validateMode(p.declared)...)

	if p.Host != nil && (p.Host.missing || p.validateNames().HasError()) {
		p = p.unplaced()
	}

	for _, g := range p.groups {
		if p.Host == nil {
			diags.Append(g.validateImage()...)
			diags.Append(g.validateCount()...)
		}
	}

	diags.Append(validateMachines(p)...)
	diags.Append(validateVersions(p)...)
	diags.Append(validateConfigurations(p)...)
	diags.Append(p.restore.validate()...)
	diags.Append(p.refuseForeignSnapshot()...)

	if p.Secrets != "" {
		if _, err := pki.Parse([]byte(p.Secrets)); err != nil {
			diags.Append(finding.InvalidSecrets(p.secretsPath(), err))
		}
	}

	return diags
}

func (g *Group) validateImage() finding.List {
	var diags finding.List

	if id := g.Schematic.ValueString(); id != "" {
		if err := image.CheckSchematic(id); err != nil {
			diags.Append(finding.Invalid(g.At.AtName("schematic"), "schematic", "found "+finding.Quote(id), "allowed is the id that the Image Factory gives: 64 lower-case hexadecimal digits",
				"upload the schematic to the factory and copy the id it answers"))
		}
	}

	if platform := g.Platform.ValueString(); platform != "" {
		if _, err := (image.Installer{Version: defaultTalosVersion, Platform: platform}).Reference(); err != nil {
			diags.Append(finding.Invalid(g.At.AtName("platform"), "platform", "found "+finding.Quote(platform), "allowed are the names Talos uses, such as metal, nocloud or aws",
				"leave it out for physical and most virtual machines"))
		}
	}

	return diags
}

// validateCount checks how many machines there are.
func (g *Group) validateCount() finding.List {
	var diags finding.List

	if g.Machines.IsUnknown() {
		return nil
	}

	count := len(g.Machines.Elements())

	switch {
	case count == 0:
		diags.Append(finding.Invalid(g.At.AtName("machines"), "machines", "found no machine", "allowed is one or more",
			fmt.Sprintf("add the %s machines, each under a name of your choice", g.Role)))
	case g.Role == cluster.ControlPlane && count%2 == 0:
		diags.Append(evenNumber(g.At.AtName("machines"), count))
	}

	return diags
}

// evenNumber warns of a number of control planes that is not odd.
func evenNumber(at finding.Path, count int) finding.Finding {
	return finding.Doubtful(at, "number of control planes", fmt.Sprintf("found %d control-plane machines", count),
		fmt.Sprintf("An even number survives no more failures than %d would: etcd needs a majority", count-1), "Use 1, 3 or 5")
}

// validateMachines checks the machines against each other, control planes first.
func validateMachines(p MachineSet) finding.List {
	var diags finding.List

	addresses, uuids := map[string]string{}, map[string]string{}

	var names []string
	for _, g := range p.groups {
		names = append(names, p.namesOf(g)...)
	}

	for _, name := range names {
		machine := p.Machines[name]

		if machine.Address != "" {
			diags.Append(p.validateAddress(name, machine.Address, addresses)...)
		}

		if uuid := strings.ToLower(machine.uuid); uuid != "" {
			if other, taken := uuids[uuid]; taken {
				diags.Append(finding.Invalid(p.machinePath(name).AtName("uuid"), "machine", fmt.Sprintf("found %s with the uuid of %s", name, other),
					"allowed is each machine once", "remove one of them, or correct the uuid"))
			}

			uuids[uuid] = name
		}
	}

	return diags
}

// validateAddress checks one address, and that no other machine has it. IP
// addresses are compared by value, since IPv6 has many spellings for one.
func (p MachineSet) validateAddress(name, address string, seen map[string]string) finding.List {
	at := p.machinePath(name).AtName("address")

	host, err := tf.CanonicalHost(address)
	if err != nil {
		return finding.List{finding.Invalid(at, "address", "found "+finding.Quote(address), "allowed is an IP address or a host name, without scheme, port or brackets", err.Error())}
	}

	if other, taken := seen[host]; taken {
		return finding.List{finding.Invalid(at, "machine", fmt.Sprintf("found %s with the address of %s, %s", name, other, address),
			"allowed is each machine once", "remove one of them, or correct the address")}
	}

	seen[host] = name

	// A control plane that joins by itself is one of those that the handle lists.
	if !p.inHandle || p.Machines[name].Group.Role != cluster.Worker {
		return nil
	}

	for _, endpoint := range p.Endpoints {

		if other, err := tf.CanonicalHost(endpoint); err == nil && other == host {
			return finding.List{finding.Invalid(at, "machine", fmt.Sprintf("found %s with the address of a control plane of the cluster, %s", name, address),
				"allowed is each machine once", "remove it here, or correct the address")}
		}
	}

	return nil
}

// validateVersions checks the versions against each other.
func validateVersions(p MachineSet) finding.List {
	var diags finding.List

	for _, g := range p.groups {
		diags.Append(p.validateVersionsOf(g)...)
	}

	return diags
}

func (p MachineSet) validateVersionsOf(g *Group) finding.List {
	version := g.TalosVersion.ValueString()
	if version == "" {
		return nil
	}

	talos, err := machineconfig.ParseTalosVersion(version)
	if err != nil {
		return fieldDiagnostics(p, p.problemsIn(g, "", err))
	}

	var diags finding.List

	if !talos.Known() {
		diags.Append(finding.Doubtful(g.versionAt, "talos_version", fmt.Sprintf("found %s", talos),
			"This version of the provider knows Talos up to "+newestTalos+", and cannot tell what a newer one supports: it is treated like that",
			"Read the release notes of Talos, and use a newer release of this provider when there is one"))
	}

	problems := []error{p.checkImages(g, talos)}

	if kubernetes, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion); err == nil {
		problems = append(problems, p.problemsIn(g, "", machineconfig.CheckKubernetesSupported(talos, kubernetes)))
	}

	if p.Settings.Contract != "" {
		problems = append(problems, p.problemsIn(g, "", machineconfig.CheckContract(p.Settings.Contract, talos)))
	}

	return append(diags, fieldDiagnostics(p, errors.Join(problems...))...)
}

// checkImages compares the installer images that are given with the version that is to
// run: an upgrade installs the image, and would go on for ever.
func (p MachineSet) checkImages(g *Group, talos machineconfig.TalosVersion) error {
	var problems []error

	for _, name := range p.namesOf(g) {
		m := p.Machines[name]

		reference, err := image.ParseReference(m.config.Install.Image)
		if !m.ownImage || err != nil {
			continue
		}

		if installs, ok := machineconfig.ReadTalosVersion(reference.Tag); ok && !installs.EQ(talos.Version) {
			problems = append(problems, p.problems(name, &machineconfig.FieldError{
				Field: "machine.install.image", Found: finding.Quote(reference.Tag) + " as the version of the installer image",
				Allowed: "talos_version, " + talos.String(), Fix: "change both together, or leave the image out",
			}))
		}
	}

	return errors.Join(problems...)
}

// validateConfigurations checks the settings: as a whole when they are known, by
// rendering the configurations, else piece by piece.
func validateConfigurations(p MachineSet) finding.List {
	if !p.Unknown && len(p.Machines) > 0 {
		return fieldDiagnostics(p, errors.Join(p.check(), p.checkMeta()))
	}

	problems := []error{p.problems("", machineconfig.ValidateCluster(p.Settings)), p.checkMeta()}
	for _, name := range p.names() {
		problems = append(problems, p.problems(name, machineconfig.ValidateMachine(p.Settings, p.Machines[name].config)))
	}

	return fieldDiagnostics(p, errors.Join(problems...))
}
