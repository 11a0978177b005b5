package machineset

import (
	"reflect"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/manifests"
)

// changedManifests is what bootstrap manifests are made of and that p has otherwise than prior, whose manifests the
// cluster has. None where that is not known, and for what no control plane is in.
func (p Set) changedManifests(prior Set) []string {
	wanted, ok := p.manifestSource()
	had, known := prior.manifestSource()

	if !ok || !known || reflect.DeepEqual(wanted.Settings, had.Settings) &&
		reflect.DeepEqual(wanted.only().Config, had.only().Config) {
		return nil
	}

	now, ok := wanted.bootstrapManifests()
	before, known := had.bootstrapManifests()

	if !ok || !known {
		return nil
	}

	return manifests.Changes(before, now)
}

// manifestSource is a set of the one control plane whose manifests count: the first by its name, as in a sync.
func (p Set) manifestSource() (Set, bool) {
	if p.Unknown {
		return Set{}, false
	}

	for _, name := range p.Names() {
		if p.Machines[name].Group.Role == cluster.ControlPlane {
			p.Machines = map[string]Machine{name: p.Machines[name]}

			return p, true
		}
	}

	return Set{}, false
}

// only is the machine of a set of one.
func (p Set) only() Machine {
	for _, m := range p.Machines {
		return m
	}

	return Machine{}
}

// bootstrapManifests is what the manifests of a set of one are made of. It needs no secrets.
func (p Set) bootstrapManifests() ([]manifests.Source, bool) {
	for _, config := range p.filesOfCreate().Configs {
		sources, err := manifests.Of(config)

		return sources, err == nil
	}

	return nil, false
}
