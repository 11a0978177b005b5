package machineset

import (
	"path"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
)

// warnOfLostExtensions warns about upgrades to an image that lacks system extensions of the running image. It does
// not warn about images with unknown content: those of another publisher, or of a schematic that is given by its ID.
func (r PriorState) warnOfLostExtensions(p Set, steps []step.Step) finding.List {
	installers := map[string]string{} // of the last upgrade of each machine

	for _, op := range steps {
		if upgrade, ok := op.(step.Upgrade); ok && !upgrade.Container {
			installers[upgrade.Machine] = upgrade.Installer
		}
	}

	var machines finding.Alike[string]

	for _, name := range p.Names() {
		if lost := p.Machines[name].lostExtensions(r.Machines[name].Extensions, installers[name]); len(lost) > 0 {
			machines.Add(strings.Join(lost, ", "), name)
		}
	}

	var lines, losers []string
	for lost, names := range machines.All() {
		lines, losers = append(lines, finding.Describe(names)+": "+lost), append(losers, names...)
	}

	if len(lines) == 0 {
		return nil
	}

	return finding.List{extensionsRemoved.With(finding.Args{"machines": losers, "extensions": lines})}
}

// lostExtensions are the running extensions that an installer image does not have.
func (m Machine) lostExtensions(running []string, installer string) []string {
	reference, err := image.ParseReference(installer)
	if installer == "" || err != nil {
		return nil
	}

	target, known := reference.Installer()

	switch {
	case !known:
		return nil
	case target.Schematic == "":
		return running
	case target.Schematic != m.Group.Schematic || m.Group.Extensions == nil:
		return nil
	}

	return slices.DeleteFunc(slices.Clone(running), func(name string) bool {
		return slices.ContainsFunc(m.Group.Extensions, func(official string) bool { return path.Base(official) == name })
	})
}
