package machineconfig

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
)

// blame finds the patch that made the configuration invalid, by leaving out patches from the end until it is
// valid, and reports problem there.
func (g *Generator) blame(m Machine, problem string) *FieldError {
	mistake := &FieldError{
		Found:   "settings that make an invalid configuration (" + problem + ")",
		Allowed: "what Talos accepts for a " + string(m.Role) + " machine", Err: ErrInvalidConfig,
	}

	scopes := g.scopes(m)
	for i := len(scopes) - 1; i >= 0; i-- {
		for n := len(scopes[i].patches); n > 0; n-- {
			if !g.validWith(m, i, n-1) {
				continue
			}

			mistake.Field = at(scopes[i].field, n-1)
			mistake.Found = "a patch that makes the configuration invalid (" + problem + ")"
			mistake.Fix = "correct or remove this patch"

			return mistake
		}
	}

	return mistake
}

// validWith says whether the configuration is valid with the patches of the scopes before the given one, and
// the first n of that one.
func (g *Generator) validWith(m Machine, scope, n int) bool {
	shorter := &Generator{cluster: g.cluster, contract: g.contract, input: g.input, bundle: g.bundle}
	lists := []*[]string{&shorter.cluster.Patches, &shorter.cluster.ProvidedPatches, &m.PoolPatches, &m.Patches,
		&m.ProvidedPatches}

	*lists[scope] = (*lists[scope])[:n]
	for _, list := range lists[scope+1:] {
		*list = nil
	}

	documents, err := shorter.patched(m)
	if err != nil {
		return false
	}

	facts := factsOf(documents.known)
	if shorter.contradiction(documents, m) != "" || facts.overlap() != "" || len(facts.addressesInNetworks()) > 0 ||
		duplicate(documents.known) != "" {
		return false
	}

	provider := documents.known

	// From contract v1.14 a configuration without a disk is valid.
	if !g.contract.UnattendedInstallConfig() {
		if provider, err = provider.PatchV1Alpha1(giveInstallDisk); err != nil {
			return false
		}
	}

	_, err = provider.ValidateAsClient(runtimeMode(m.Mode), validation.WithLocal())

	return err == nil
}

// giveInstallDisk fills in a disk, so that one that only a later patch gives does not count as a mistake of an
// earlier one.
func giveInstallDisk(main *v1alpha1.Config) error {
	if main.MachineConfig.MachineInstall == nil {
		main.MachineConfig.MachineInstall = &v1alpha1.InstallConfig{}
	}

	if install := main.MachineConfig.MachineInstall; install.InstallDisk == "" && install.InstallDiskSelector == nil {
		install.InstallDisk = "/dev/any"
	}

	return nil
}

// oneLine turns the nested lists of problems of the machinery library into one line.
func oneLine(err error) string {
	var lines []string

	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "* ")
		if line != "" && !strings.HasSuffix(line, "occurred:") {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, "; ")
}
