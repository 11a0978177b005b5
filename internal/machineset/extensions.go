package machineset

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
)

// warnOfLostExtensions warns about upgrades to an image that lacks system extensions of the running image. Images with
// unknown content are those of another publisher, or of a schematic that is given by its ID.
func (r PriorState) warnOfLostExtensions(p Set, steps []step.Step) finding.List {
	var machines finding.Alike[string]

	for name, installer := range r.otherSchematics(p, steps) {
		wanted := p.Machines[name].extensionsOf(installer)

		lost := slices.DeleteFunc(slices.Clone(r.Machines[name].Extensions), func(running string) bool {
			return wanted == nil || slices.Contains(wanted, running)
		})
		if len(lost) > 0 {
			machines.Add(strings.Join(lost, ", "), name)
		}
	}

	lines, losers := linesOfAlike(machines)
	if len(lines) == 0 {
		return nil
	}

	return finding.List{extensionsRemoved.With(finding.Args{"machines": losers, "extensions": lines})}
}

// otherSchematics are the installers of the last upgrades of machines, in order, without those of running schematics.
func (r PriorState) otherSchematics(p Set, steps []step.Step) iter.Seq2[string, string] {
	installers := map[string]string{}

	for _, op := range steps {
		if upgrade, ok := op.(step.Upgrade); ok && !upgrade.Container {
			installers[upgrade.Machine] = upgrade.Installer
		}
	}

	return func(yield func(string, string) bool) {
		for _, name := range p.Names() {
			target, _ := installerOf(installers[name])
			if running := r.Machines[name].Schematic; running != "" && running == target.Schematic {
				continue
			}

			if installers[name] != "" && !yield(name, installers[name]) {
				return
			}
		}
	}
}

func linesOfAlike(machines finding.Alike[string]) (lines, names []string) {
	for text, alike := range machines.All() {
		lines, names = append(lines, finding.Describe(alike)+": "+text), append(names, alike...)
	}

	return lines, names
}

func installerOf(text string) (image.Installer, bool) {
	reference, err := image.ParseReference(text)
	if err != nil {
		return image.Installer{}, false
	}

	return reference.Installer()
}

// extensionsOf are the names of the system extensions in an installer image; nil when they are unknown.
func (m Machine) extensionsOf(installer string) []string {
	target, known := installerOf(installer)

	switch {
	case !known || m.Image != "":
		return nil
	case target.Schematic == "" || target.Schematic == image.VanillaSchematic:
		return []string{}
	case target.Schematic != m.Group.Schematic:
		return nil
	default:
		return namesOfExtensions(m.Group.Extensions)
	}
}

// namesOfExtensions are the names of official extensions on machines: qemu-guest-agent of siderolabs/qemu-guest-agent.
func namesOfExtensions(official []string) []string {
	if official == nil {
		return nil
	}

	names := []string{}
	for _, name := range official {
		names = append(names, path.Base(name))
	}

	return names
}

// SchematicChange is an upgrade to another schematic, of which the configuration has only the ID.
type SchematicChange struct {
	Machine string
	// ID is the schematic, and Registry the Image Factory that its image comes from; empty for the public one.
	ID, Registry string
	// Running are the names of the running system extensions.
	Running []string
}

// schematicChanges are the upgrades to schematics with unknown content.
func (r PriorState) schematicChanges(p Set, steps []step.Step) []SchematicChange {
	var changes []SchematicChange

	for name, installer := range r.otherSchematics(p, steps) {
		target, known := installerOf(installer)
		if known && p.Machines[name].extensionsOf(installer) == nil {
			changes = append(changes, SchematicChange{Machine: name, ID: target.Schematic, Registry: target.Registry,
				Running: r.Machines[name].Extensions})
		}
	}

	return changes
}

// WarnOfSchematics reports the system extensions that come and go with schematics. official are the extensions of
// those whose content was found, by ID.
func WarnOfSchematics(changes []SchematicChange, official map[string][]string) finding.List {
	var (
		machines finding.Alike[string]
		removed  bool
	)

	for _, c := range changes {
		if official[c.ID] == nil {
			continue
		}

		wanted := namesOfExtensions(official[c.ID])
		if change := step.ExtensionChange(c.Running, wanted); change != "" {
			machines.Add(fmt.Sprintf("%s (schematic %s)", change, step.ShortID(c.ID)), c.Machine)
			removed = removed || strings.Contains(change, "- ")
		}
	}

	lines, names := linesOfAlike(machines)
	if len(lines) == 0 {
		return nil
	}

	return finding.List{extensionsChange.With(finding.Args{"machines": names, "extensions": lines, "removed": removed})}
}
