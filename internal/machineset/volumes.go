package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

// stuckVolumes are changes that machines with data do not accept, with these machines.
type stuckVolumes map[system.Change][]string

// add records those of a machine whose running and wanted configurations differ in changes.
func (s stuckVolumes) add(name string, before, after []byte, changes []machineconfig.Change) error {
	if !slices.ContainsFunc(changes, ofVolume) {
		return nil
	}

	stuck, err := machineconfig.VolumeChanges(before, after)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	for _, change := range stuck {
		s[change] = append(s[change], name)
	}

	return nil
}

// TakesVolumes says why a machine with one configuration cannot get another. State does not have everything that
// runs: it lacks patches of the provider configuration and manual changes.
func TakesVolumes(active, config []byte) error {
	stuck, err := machineconfig.VolumeChanges(active, config)
	if err != nil || len(stuck) == 0 {
		return nil //nolint:nilerr // Talos compares a configuration that this build cannot read
	}

	return fmt.Errorf("%s: %s: %s", stuck[0].Document, stuck[0].What, stuck[0].Why)
}

// ofVolume reports whether a change may be about a volume.
func ofVolume(c machineconfig.Change) bool {
	return strings.Contains(c.Document, "Volume") || c.Path.StartsWith("machine", "systemDiskEncryption") ||
		len(c.Path) < 2 && c.Document == "v1alpha1"
}

// refuseVolumes refuses changes of volumes that only a reinstalled machine accepts.
func (p Set) refuseVolumes(prior Set, stuck stuckVolumes) finding.List {
	var diags finding.List

	for _, change := range slices.SortedFunc(maps.Keys(stuck),
		func(a, b system.Change) int { return cmp.Compare(a.Document, b.Document) }) {
		names := stuck[change]
		diags.Append(volumeChange.At(p.volumePath(prior, names[0], change.Volume), finding.Args{"machines": names,
			"document": change.Document, "what": change.What, "why": finding.Sentences(change.Why)}))
	}

	return diags
}

// volumePath is the attribute of a system volume that differs; the machine where a patch differs.
func (p Set) volumePath(prior Set, name, volume string) finding.Path {
	now, before := p.Machines[name].Config.System.Volumes, prior.Machines[name].Config.System.Volumes

	is, given := now[volume]
	at := p.locateMachine([]any{"system_volumes"}, name)

	switch {
	case volume == "" || reflect.DeepEqual(is, before[volume]):
		return p.machinePath(name)
	case given:
		return at.AtMapKey(volume)
	default:
		return at
	}
}
