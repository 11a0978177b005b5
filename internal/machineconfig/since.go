package machineconfig

import (
	"cmp"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fields"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

// ValidatePatchFor is ValidatePatch for machines of a Talos version, which also have to know the documents and fields
// of the patch; nil stands for any version that is supported, and for all forms of patches.
func ValidatePatchFor(text string, talos *TalosVersion) error {
	contract, version := fmt.Sprintf("v1.%d", minTalosMinor), TalosVersion{}
	version.Major, version.Minor = 1, maxTalosMinor

	if talos != nil {
		contract, version = talos.Contract(), *talos
	}

	if err := ValidatePatch(text, contract); err != nil {
		return err
	}

	parsed, err := parsePatch("", text)
	if err != nil {
		return err
	}

	return parsed.unknownTo("", version)
}

// unknownTo is the error of a patch that has what machines of a Talos version do not know, and would refuse; nil when
// there is none.
func (p *patch) unknownTo(field string, talos TalosVersion) error {
	if talos.Known() && len(p.unknown) > 0 && !p.unknown[0].isDelete() {
		return unknownKind(field, p.unknown[0].identity)
	}

	if p.merge != nil {
		if name, least := system.NewerThan(added(p.merge.Documents()), talos.Minor); name != "" {
			return tooNew(field, "the document "+name, least, talos)
		}
	}

	for _, c := range p.contents {
		path, least := fields.Newer(cmp.Or(c.kind, mainDocument), c.fields, talos.Minor)
		if path != "" && c.fields[patchKey] != deleteValue {
			return tooNew(field, fmt.Sprintf("%s of the document %s", path, c.identity), least, talos)
		}
	}

	return nil
}

func tooNew(field, what string, least uint64, talos TalosVersion) *FieldError {
	return &FieldError{
		Field: field, Found: fmt.Sprintf("%s for Talos %s", what, talos),
		Allowed: fmt.Sprintf("it with Talos v1.%d and newer", least),
		Fix:     "raise talos_version, or remove it: machines reject unknown fields", Err: ErrInvalidConfig,
	}
}

// tooNew finds the patch that has what the Talos of the machine does not know. Settings, and the contract, are checked
// themselves.
func (g *Generator) tooNew(d *documents, m Machine) error {
	talos, ok := ReadTalosVersion(m.TalosVersion)
	if !ok {
		return nil
	}

	var mistake error

	field, err := g.firstPatch(m, func(p *patch) bool {
		if mistake = p.unknownTo("", talos); p.operations != nil {
			mistake = cmp.Or(newerResult(d, talos), mistake)
		}

		return mistake != nil
	})
	if err != nil || field == "" {
		return err
	}

	for _, found := range FieldErrors(mistake) {
		found.Field = field
	}

	return mistake
}

// newerResult is the error of JSON 6902 operations: their effect shows in their result alone.
func newerResult(d *documents, talos TalosVersion) error {
	final, err := mainContent(d.known)
	if err != nil {
		return err
	}

	path, least := fields.Newer(mainDocument, final, talos.Minor)
	if path == "" {
		return nil
	}

	return tooNew("", path, least, talos)
}

// nameless is the error of a machine without a source for its name: Talos 1.12 refuses a document with neither a
// name nor `auto: stable` (machinery 1.12, config/types/network/hostname.go), and Talos 1.13 takes the name that
// DHCP or the platform gives.
func nameless(d *documents, m Machine) string {
	talos, ok := ReadTalosVersion(m.TalosVersion)
	if !ok || talos.Minor > 12 {
		return ""
	}

	found, ok := places.Document[*network.HostnameConfigV1Alpha1](d.known.Documents())
	if !ok || found.ConfigHostname != "" || found.AutoHostname() == nethelpers.AutoHostnameKindStable {
		return ""
	}

	return "HostnameConfig has no hostname, which Talos " + talos.String() + " needs beside auto: off"
}
