package provider

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// supportedTalos is the range of Talos versions, for texts.
const supportedTalos = "v1.10 to " + newestTalos

// newestTalos is the newest minor version that is known.
const newestTalos = "v1.13"

// validate checks everything that can be checked without a machine and as far as
// it is known. All mistakes are reported at once.
func (p pool) validate() diag.Diagnostics {
	var diags diag.Diagnostics

	if p.declared.senseless() {
		return nil // which the attribute itself says; nothing else can be told without it
	}

	diags.Append(p.validateMode(p.declared)...)

	if p.host != nil && (p.host.missing || p.validateNames().HasError()) {
		p = p.unplaced()
	}

	for _, g := range p.groups {
		if p.host == nil {
			diags.Append(g.validateImage()...)
			diags.Append(g.validateCount()...)
		}
	}

	diags.Append(validateMachines(p)...)
	diags.Append(validateVersions(p)...)
	diags.Append(validateConfigurations(p)...)
	diags.Append(p.restore.validate()...)
	diags.Append(p.refuseForeignSnapshot()...)

	if p.secrets != "" {
		if _, err := pki.Parse([]byte(p.secrets)); err != nil {
			diags.Append(invalidSecrets(p.secretsPath(), err))
		}
	}

	return diags
}

func (g *group) validateImage() diag.Diagnostics {
	var diags diag.Diagnostics

	if id := g.Schematic.ValueString(); id != "" {
		if err := image.CheckSchematic(id); err != nil {
			diags.Append(invalid(g.at.AtName("schematic"), "schematic", "found "+quote(id), "allowed is the id that the Image Factory gives: 64 lower-case hexadecimal digits",
				"upload the schematic to the factory and copy the id it answers"))
		}
	}

	if platform := g.Platform.ValueString(); platform != "" {
		if _, err := (image.Installer{Version: defaultTalosVersion, Platform: platform}).Reference(); err != nil {
			diags.Append(invalid(g.at.AtName("platform"), "platform", "found "+quote(platform), "allowed are the names Talos uses, such as metal, nocloud or aws",
				"leave it out for physical and most virtual machines"))
		}
	}

	return diags
}

// validateCount checks how many machines there are.
func (g *group) validateCount() diag.Diagnostics {
	var diags diag.Diagnostics

	if g.Machines.IsUnknown() {
		return nil
	}

	count := len(g.Machines.Elements())

	switch {
	case count == 0:
		diags.Append(invalid(g.at.AtName("machines"), "machines", "found no machine", "allowed is one or more",
			fmt.Sprintf("add the %s machines, each under a name of your choice", g.role)))
	case g.role == cluster.ControlPlane && count%2 == 0:
		diags.Append(evenNumber(g.at.AtName("machines"), count))
	}

	return diags
}

// evenNumber warns of a number of control planes that is not odd.
func evenNumber(at path.Path, count int) diag.Diagnostic {
	return doubtful(at, "number of control planes", fmt.Sprintf("found %d control-plane machines", count),
		fmt.Sprintf("An even number survives no more failures than %d would: etcd needs a majority", count-1), "Use 1, 3 or 5")
}

// validateMachines checks the machines against each other, control planes first.
func validateMachines(p pool) diag.Diagnostics {
	var diags diag.Diagnostics

	addresses, uuids := map[string]string{}, map[string]string{}

	var names []string
	for _, g := range p.groups {
		names = append(names, p.namesOf(g)...)
	}

	for _, name := range names {
		machine := p.machines[name]

		if machine.address != "" {
			diags.Append(p.validateAddress(name, machine.address, addresses)...)
		}

		if uuid := strings.ToLower(machine.uuid); uuid != "" {
			if other, taken := uuids[uuid]; taken {
				diags.Append(invalid(p.machinePath(name).AtName("uuid"), "machine", fmt.Sprintf("found %s with the uuid of %s", name, other),
					"allowed is each machine once", "remove one of them, or correct the uuid"))
			}

			uuids[uuid] = name
		}
	}

	return diags
}

// validateAddress checks one address, and that no other machine has it. IP
// addresses are compared by value, since IPv6 has many spellings for one.
func (p pool) validateAddress(name, address string, seen map[string]string) diag.Diagnostics {
	at := p.machinePath(name).AtName("address")

	host, err := canonicalHost(address)
	if err != nil {
		return diag.Diagnostics{invalid(at, "address", "found "+quote(address), "allowed is an IP address or a host name, without scheme, port or brackets", err.Error())}
	}

	if other, taken := seen[host]; taken {
		return diag.Diagnostics{invalid(at, "machine", fmt.Sprintf("found %s with the address of %s, %s", name, other, address),
			"allowed is each machine once", "remove one of them, or correct the address")}
	}

	seen[host] = name

	// A control plane that joins by itself is one of those that the handle lists.
	if !p.inHandle || p.machines[name].group.role != cluster.Worker {
		return nil
	}

	for _, endpoint := range p.endpoints {

		if other, err := canonicalHost(endpoint); err == nil && other == host {
			return diag.Diagnostics{invalid(at, "machine", fmt.Sprintf("found %s with the address of a control plane of the cluster, %s", name, address),
				"allowed is each machine once", "remove it here, or correct the address")}
		}
	}

	return nil
}

// canonicalHost gives the same text for all spellings of one host.
func canonicalHost(host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String(), nil
	}

	switch {
	case strings.Contains(host, "://"):
		return "", errors.New("leave out the scheme")
	case strings.HasPrefix(host, "["):
		return "", errors.New("leave out the brackets")
	case strings.Contains(host, ":"):
		return "", errors.New("leave out the port; the Talos API is always on port 50000")
	case host == "" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" || strings.Trim(host, "0123456789.") == "":
		return "", errors.New("write an IP address such as 10.0.0.11 or fd00::11, or a host name")
	}

	return strings.ToLower(strings.TrimSuffix(host, ".")), nil
}

// validateVersions checks the versions against each other.
func validateVersions(p pool) diag.Diagnostics {
	var diags diag.Diagnostics

	for _, g := range p.groups {
		diags.Append(p.validateVersionsOf(g)...)
	}

	return diags
}

func (p pool) validateVersionsOf(g *group) diag.Diagnostics {
	version := g.talosVersion.ValueString()
	if version == "" {
		return nil
	}

	talos, err := machineconfig.ParseTalosVersion(version)
	if err != nil {
		return fieldDiagnostics(p, p.problemsIn(g, "", err))
	}

	var diags diag.Diagnostics

	if !talos.Known() {
		diags.Append(doubtful(g.versionAt, "talos_version", fmt.Sprintf("found %s", talos),
			"This version of the provider knows Talos up to "+newestTalos+", and cannot tell what a newer one supports: it is treated like that",
			"Read the release notes of Talos, and use a newer release of this provider when there is one"))
	}

	problems := []error{p.checkImages(g, talos)}

	if kubernetes, err := machineconfig.ParseKubernetesVersion(p.settings.KubernetesVersion); err == nil {
		problems = append(problems, p.problemsIn(g, "", machineconfig.CheckKubernetesSupported(talos, kubernetes)))
	}

	if p.settings.Contract != "" {
		problems = append(problems, p.problemsIn(g, "", machineconfig.CheckContract(p.settings.Contract, talos)))
	}

	return append(diags, fieldDiagnostics(p, errors.Join(problems...))...)
}

// checkImages compares the installer images that are given with the version that is to
// run: an upgrade installs the image, and would go on for ever.
func (p pool) checkImages(g *group, talos machineconfig.TalosVersion) error {
	var problems []error

	for _, name := range p.namesOf(g) {
		m := p.machines[name]

		reference, err := image.ParseReference(m.config.Install.Image)
		if !m.ownImage || err != nil {
			continue
		}

		if installs, ok := machineconfig.ReadTalosVersion(reference.Tag); ok && !installs.EQ(talos.Version) {
			problems = append(problems, p.problems(name, &machineconfig.FieldError{
				Field: "machine.install.image", Found: quote(reference.Tag) + " as the version of the installer image",
				Allowed: "talos_version, " + talos.String(), Fix: "change both together, or leave the image out",
			}))
		}
	}

	return errors.Join(problems...)
}

// validateConfigurations checks the settings: as a whole when they are known, by
// rendering the configurations, else piece by piece.
func validateConfigurations(p pool) diag.Diagnostics {
	if !p.unknown && len(p.machines) > 0 {
		return fieldDiagnostics(p, errors.Join(p.check(), p.checkMeta()))
	}

	problems := []error{p.problems("", machineconfig.ValidateCluster(p.settings)), p.checkMeta()}
	for _, name := range p.names() {
		problems = append(problems, p.problems(name, machineconfig.ValidateMachine(p.settings, p.machines[name].config)))
	}

	return fieldDiagnostics(p, errors.Join(problems...))
}

func quote(s string) string { return fmt.Sprintf("%q", s) }
