package clusterimport

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/remainder"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// Patches are what machines have beyond their settings, as an import writes it: for all machines of a cluster, for
// groups of them, by prefix, and for single ones, by name.
type Patches struct {
	Cluster  []string
	Groups   map[string][]string
	Machines map[string][]string
}

// rounds is how often patches are made and tried. What Talos does not merge, such as most lists, is then replaced as
// a whole.
const rounds = 4

// PatchesOf finds what machines have beyond the settings that an import read of a set, and warns of what it leaves
// out. It tries the patches: when they do not make the configuration of a machine, the rest is drift, which names
// its places.
func PatchesOf(p machineset.Set, found map[string]Recognized) (Patches, finding.List) {
	base, err := p.Configurations()
	if err != nil {
		return Patches{}, notWritten(err)
	}

	var (
		patches Patches
		hidden  map[string][]fieldpath.Place
		whole   = map[string]remainder.Whole{}
	)

	for range rounds {
		var rest map[string]remainder.Remainder

		if rest, hidden, err = remainders(base, found, whole); err != nil {
			return Patches{}, notWritten(err)
		}

		if patches, err = shared(p, rest); err != nil {
			return Patches{}, notWritten(err)
		}

		made, err := patches.In(p).Configurations()
		if err != nil {
			return Patches{}, notWritten(err)
		}

		again, _, err := remainders(made, found, nil)
		if err != nil {
			return Patches{}, notWritten(err)
		}

		if !replaceNext(whole, again) {
			break
		}
	}

	return patches, leftOut(hidden)
}

// remainders are what each machine has beyond a configuration, and what is left out of it.
func remainders(
	base machineset.Rendered, found map[string]Recognized, whole map[string]remainder.Whole,
) (map[string]remainder.Remainder, map[string][]fieldpath.Place, error) {
	rest, hidden := map[string]remainder.Remainder{}, map[string][]fieldpath.Place{}

	for name, machine := range found {
		r, err := remainder.Of(base.Configs[name], machine.Config, whole[name])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}

		rest[name], hidden[name] = r, r.Hidden
	}

	return rest, hidden, nil
}

// replaceNext notes what the patches of a round did not achieve, and reports whether another round may.
func replaceNext(whole map[string]remainder.Whole, again map[string]remainder.Remainder) bool {
	more := false

	for name, r := range again {
		for _, place := range r.Places() {
			// When a replacement had no effect, its parent is replaced.
			for whole[name][place.String()] && len(place.Path) > 2 {
				place.Path = place.Path[:len(place.Path)-1]
			}

			if whole[name][place.String()] || len(place.Path) == 0 {
				continue
			}

			if whole[name] == nil {
				whole[name] = remainder.Whole{}
			}

			whole[name][place.String()], more = true, true
		}
	}

	return more
}

// shared moves what all machines have in common to the patches for all of them. What a single machine has stays its
// own, even when it is the only one: another machine that joins must not get its addresses.
func shared(p machineset.Set, rest map[string]remainder.Remainder) (Patches, error) {
	rest = maps.Clone(rest)
	patches := Patches{Groups: map[string][]string{}, Machines: map[string][]string{}}
	groups := map[string][]string{}

	for _, name := range p.Names() {
		prefix := p.Machines[name].Group.Prefix
		groups[prefix] = append(groups[prefix], name)
	}

	var problems []error

	extract := func(names []string) []string {
		var all []remainder.Remainder
		for _, name := range names {
			all = append(all, rest[name])
		}

		common := remainder.Common(all...)
		for _, name := range names {
			rest[name] = rest[name].Without(common)
		}

		texts, err := common.Patches()
		problems = append(problems, err)

		return texts
	}

	if len(groups) > 1 {
		patches.Cluster = extract(p.Names())
	}

	for prefix, names := range groups {
		if len(names) > 1 {
			patches.Groups[prefix] = extract(names)
		}
	}

	for name, r := range rest {
		texts, err := r.Patches()
		problems = append(problems, err)
		patches.Machines[name] = texts
	}

	return patches, errors.Join(problems...)
}

// In is a set with the patches.
func (a Patches) In(p machineset.Set) machineset.Set {
	p.Settings.Patches = slices.Concat(p.Settings.Patches, a.Cluster)

	return p.Each(func(name string, m *machineset.Machine) {
		m.Config.PoolPatches = slices.Concat(m.Config.PoolPatches, a.Groups[m.Group.Prefix])
		m.Config.Patches = slices.Concat(m.Config.Patches, a.Machines[name])
	})
}

func notWritten(err error) finding.List {
	return finding.List{patchesNotWritten.With(finding.Args{"cause": err.Error()})}
}

// leftOut warns of what is in no patch.
func leftOut(hidden map[string][]fieldpath.Place) finding.List {
	var lines []string

	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		for _, place := range hidden[name] {
			lines = append(lines, name+": "+place.String())
		}
	}

	if len(lines) == 0 {
		return nil
	}

	return finding.List{secretsLeftOut.With(finding.Args{"places": lines})}
}
