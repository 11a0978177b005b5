package machineset

import (
	"errors"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// SupportedTalos is the range of Talos versions, for texts.
var SupportedTalos = talosversion.Oldest().String() + " to " + NewestTalos

// NewestTalos is the newest minor version that is known, for texts.
var NewestTalos = talosversion.Newest().String()

// Validate checks the machines against each other, their versions and their configurations, as far as they are known
// and without a machine. It reports all errors at once.
func (p Set) Validate() finding.List {
	p = p.WithFacts()

	return slices.Concat(validateMachines(p), validateVersions(p), validateConfigurations(p), validateResets(p),
		p.refuseOutsideOfCluster(), p.ValidateHooks(), p.validateCanary())
}

// ValidateSecrets checks the secrets, and that a snapshot to restore is from their cluster.
func (p Set) ValidateSecrets() finding.List {
	diags := p.refuseForeignSnapshot()

	if p.Secrets != "" {
		if _, err := pki.Parse([]byte(p.Secrets)); err != nil {
			diags.Append(finding.InvalidSecrets(p.secretsPath(), err))
		}
	}

	return diags
}

// ValidateImage checks the settings of installer images.
func (g *Group) ValidateImage() finding.List {
	var diags finding.List

	if g.Schematic != "" {
		diags.Append(validateSchematic(g.At.AtName("schematic"), g.Schematic)...)
	}

	if platform := g.Platform; platform != "" {
		if _, err := (image.Installer{Version: NewestTalos + ".0", Platform: platform}).Reference(); err != nil {
			diags.Append(unknownPlatform.At(g.At.AtName("platform"), finding.Args{"value": platform}))
		}
	}

	return diags
}

// validateSchematic checks the ID of a schematic, or its content, which is never shown.
func validateSchematic(at finding.Path, text string) finding.List {
	_, err := schematic.IDOf(text)

	switch {
	case err == nil:
		return nil
	case schematic.LooksLikeID(text):
		return finding.List{invalidSchematicID.At(at, finding.Args{"value": text})}
	default:
		return finding.List{invalidSchematic.At(at, finding.Args{"problem": err.Error()})}
	}
}

// validateMachines checks the machines against each other, control planes first.
func validateMachines(p Set) finding.List {
	var diags finding.List

	addresses, endpoints, waiting, uuids := map[string]string{}, map[string]string{}, map[string]string{},
		map[string]string{}

	var names []string
	for _, g := range p.Groups {
		names = append(names, p.namesOf(g)...)
	}

	for _, name := range names {
		machine := p.Machines[name]
		diags.Append(p.validateHostName(name)...)

		if machine.Address != "" {
			diags.Append(p.validateAddress(name, machine.Address, addresses)...)
		}

		diags.Append(p.validateEndpoint(name, machine, endpoints)...)
		diags.Append(p.validatePlace(name, "maintenance_address", machine.WaitsAt, waiting)...)
		diags.Append(p.validateAccess(name, machine)...)
		diags.Append(p.validateEndpointElsewhere(name, machine)...)

		if uuid := strings.ToLower(machine.UUID); uuid != "" {
			if other, taken := uuids[uuid]; taken {
				diags.Append(duplicateMachine.At(p.machinePath(name).AtName("uuid"),
					finding.Args{"value": machine.UUID, "other": other}))
			}

			uuids[uuid] = name
		}
	}

	return diags
}

// validateEndpoint checks the endpoint of one machine, and that no other machine has it.
func (p Set) validateEndpoint(name string, m Machine, seen map[string]string) finding.List {
	attribute := "talos_endpoint"
	if HostOf(m.Endpoint) == m.Address {
		attribute = "address" // which has the port
	}

	return p.validatePlace(name, attribute, m.Endpoint, seen)
}

// validateEndpointElsewhere checks that a machine is not reached at the address of another one, if that one is
// reached there.
func (p Set) validateEndpointElsewhere(name string, m Machine) finding.List {
	reached, err := CanonicalEndpoint(m.Endpoint)
	if m.Endpoint == "" || err != nil {
		return nil
	}

	for _, other := range p.Names() {
		o := p.Machines[other]

		if other == name || o.Endpoint != "" || o.Through {
			continue
		}

		if own, err := CanonicalHost(o.Address); err == nil && own == reached {
			return finding.List{duplicateMachine.At(p.machinePath(name).AtName("talos_endpoint"),
				finding.Args{"value": reached, "other": other})}
		}
	}

	return nil
}

// validatePlace checks a place of one machine, and that no other machine has it.
func (p Set) validatePlace(name, attribute, place string, seen map[string]string) finding.List {
	if place == "" {
		return nil
	}

	at := p.machinePath(name).AtName(attribute)

	canonical, err := CanonicalEndpoint(place)
	if err != nil {
		return finding.List{invalidAddress.At(at, finding.Args{"value": place, "fix": finding.Sentences(err.Error())})}
	}

	if other, taken := seen[canonical]; taken {
		return finding.List{duplicateMachine.At(at, finding.Args{"value": canonical, "other": other})}
	}

	seen[canonical] = name

	return nil
}

// validateAddress checks one address, and that no other machine has it. IP addresses are compared by value, because
// IPv6 has many spellings for one.
func (p Set) validateAddress(name, address string, seen map[string]string) finding.List {
	at := p.machinePath(name).AtName("address")

	host, err := CanonicalHost(address)
	if err != nil {
		return finding.List{invalidAddress.At(at, finding.Args{"value": address, "fix": finding.Sentences(err.Error())})}
	}

	if other, taken := seen[host]; taken {
		return finding.List{duplicateMachine.At(at, finding.Args{"value": address, "other": other})}
	}

	seen[host] = name

	if inside := p.outsideOfNetworks(at, host); len(inside) > 0 {
		return inside
	}

	// A control plane that is its own resource is one of those in the handle.
	if !p.InHandle || p.Machines[name].Group.Role != step.Worker {
		return nil
	}

	for _, endpoint := range p.Endpoints {
		if p.Machines[name].SameEndpoint(endpoint) {
			return finding.List{duplicateMachine.At(at, finding.Args{"value": address,
				"other": "a control plane of the cluster"})}
		}
	}

	return nil
}

// validateVersions checks the versions against each other.
func validateVersions(p Set) finding.List {
	var diags finding.List

	for _, g := range p.Groups {
		diags.Append(p.validateVersionsOf(g)...)
	}

	return diags
}

func (p Set) validateVersionsOf(g *Group) finding.List {
	version := g.TalosVersion
	if version == "" {
		return nil
	}

	talos, err := machineconfig.ParseTalosVersion(version)
	if err != nil {
		return FieldDiagnostics(p, p.problemsIn(g, "", err))
	}

	var diags finding.List

	if !talos.Known() && !p.Changes.AllowUntested && !p.Unknown.Has(UnknownChanges) {
		return FieldDiagnostics(p, p.problemsIn(g, "", &machineconfig.FieldError{
			Field: "talos_version", Found: finding.Quote(talos.String()),
			Allowed: SupportedTalos + ", which this version of the provider was tested with",
			Fix: "use a newer release of this provider, or set allow_untested = true. The provider then treats machines as " +
				"if they ran Talos " + NewestTalos,
		}))
	}

	if !talos.Known() {
		diags.Append(talosUntested.At(g.VersionAt, finding.Args{"version": talos, "newest": NewestTalos}))
	}

	problems := []error{p.checkImages(g, talos)}

	if kubernetes, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion); err == nil {
		problems = append(problems, p.problemsIn(g, "", machineconfig.CheckKubernetesSupported(talos, kubernetes)))
	}

	if p.Settings.Contract != "" {
		problems = append(problems, p.problemsIn(g, "", machineconfig.CheckContract(p.Settings.Contract, talos)))
	}

	return append(diags, FieldDiagnostics(p, errors.Join(problems...))...)
}

// checkImages compares the given installer images with the wanted version: an upgrade installs the image, and would
// repeat forever.
func (p Set) checkImages(g *Group, talos machineconfig.TalosVersion) error {
	var problems []error

	for _, name := range p.namesOf(g) {
		given, own := p.Machines[name].installImage()

		reference, err := image.ParseReference(given)
		if !own || err != nil {
			continue
		}

		if installer, known := reference.Installer(); known && g.SecureBoot && !installer.SecureBoot {
			problems = append(problems, p.problems(name, &machineconfig.FieldError{
				Field:   "machine.install.image",
				Found:   finding.Quote(given) + ", which is not signed for Secure Boot, with secure_boot",
				Allowed: "an image such as factory.talos.dev/metal-installer-secureboot/<schematic>:<version>",
				Fix:     "remove the image, so that it follows from secure_boot and schematic",
			}))
		}

		if installs, ok := machineconfig.ReadTalosVersion(reference.Tag); ok && !installs.EQ(talos.Version) {
			problems = append(problems, p.problems(name, &machineconfig.FieldError{
				Field: "machine.install.image", Found: finding.Quote(reference.Tag) + " as the version of the installer image",
				Allowed: "talos_version, " + talos.String(), Fix: "change both together, or remove the image",
			}))
		}
	}

	return errors.Join(problems...)
}

// validateConfigurations checks the settings: by rendering the configurations when they are known, otherwise piece by
// piece.
func validateConfigurations(p Set) finding.List {
	if !p.Unknown.Has(UnknownConfiguration) && len(p.Machines) > 0 {
		warnings, err := p.check()

		return append(FieldDiagnostics(p, errors.Join(err, p.checkMeta())), warnings...)
	}

	problems := []error{p.problems("", machineconfig.ValidateCluster(p.Settings)), p.checkMeta()}
	for _, name := range p.Names() {
		problems = append(problems, p.problems(name, machineconfig.ValidateMachine(p.Settings, p.Machines[name].Config)))
	}

	return FieldDiagnostics(p, errors.Join(problems...))
}
