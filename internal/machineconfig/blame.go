package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
)

// blame finds the patch that made the configuration invalid, and reports problem there.
func (g *Generator) blame(m Machine, problem string) *FieldError {
	mistake := &FieldError{
		Found:   "settings that make an invalid configuration (" + problem + ")",
		Allowed: "what Talos accepts for a " + string(m.Role) + " machine", Err: ErrInvalidConfig,
	}

	if field := g.origin(m, func(d *documents) bool { return g.valid(d, m) }); field != "" {
		mistake.Field = field
		mistake.Found = "a patch that makes the configuration invalid (" + problem + ")"
		mistake.Fix = "correct or remove this patch"
	}

	return mistake
}

// origin finds the patch after which a configuration is not right any more, by leaving out patches from the end until
// it is. It is empty where no patch is the reason.
func (g *Generator) origin(m Machine, right func(*documents) bool) string {
	scopes := g.scopes(m)
	for i := len(scopes) - 1; i >= 0; i-- {
		for n := len(scopes[i].patches); n > 0; n-- {
			if d, err := g.patchedUpTo(m, i, n-1); err == nil && right(d) {
				return at(scopes[i].field, n-1)
			}
		}
	}

	return ""
}

// patchedUpTo is the configuration with the patches of the scopes before the given one, and the first n of that one.
func (g *Generator) patchedUpTo(m Machine, scope, n int) (*documents, error) {
	shorter := &Generator{cluster: g.cluster, contract: g.contract, input: g.input, bundle: g.bundle}
	lists := []*[]string{&shorter.cluster.Patches, &shorter.cluster.ProvidedPatches, &m.PoolPatches, &m.Patches,
		&m.ProvidedPatches}

	*lists[scope] = (*lists[scope])[:n]
	for _, list := range lists[scope+1:] {
		*list = nil
	}

	return shorter.patched(m)
}

// valid reports whether a configuration is valid, with any patches.
func (g *Generator) valid(d *documents, m Machine) bool {
	facts := factsOf(d.known)
	if g.contradiction(d, m) != "" || facts.overlap() != "" || len(facts.addressesInNetworks()) > 0 ||
		duplicate(d.known) != "" {
		return false
	}

	provider := d.known

	// From contract v1.14 a configuration without a disk is valid.
	if !g.contract.UnattendedInstallConfig() {
		var err error
		if provider, err = provider.PatchV1Alpha1(giveInstallDisk); err != nil {
			return false
		}
	}

	_, err := provider.ValidateAsClient(runtimeMode(m.Mode), validation.WithLocal())

	return err == nil
}

// giveInstallDisk fills in a disk, so that one that only a later patch gives does not count as an error of an
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
