package machineset

import (
	"errors"
	"maps"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Meta is what is wanted of META, by the keys as the user wrote them.
type Meta struct {
	Values map[string]string
	// Sealed are the keys whose values are not known yet.
	Sealed []string
}

// Keyed is the values by the keys of Talos; nil when none are wanted. Names of no key
// are left out: checkMeta refuses them where a user can still correct them.
func (m Meta) Keyed() map[uint8]string {
	var keyed map[uint8]string

	for name, value := range m.Values {
		key, ok := machineconfig.MetaKey(name)
		if !ok {
			continue
		}

		if keyed == nil {
			keyed = map[uint8]string{}
		}

		keyed[key] = value
	}

	return keyed
}

// checkMeta reports what is wrong with the values that are wanted in META, as far as
// they are known.
func (p Set) checkMeta() error {
	var problems []error

	for _, name := range p.Names() {
		known := maps.Clone(p.Machines[name].Meta.Values)
		for _, key := range p.Machines[name].Meta.Sealed {
			delete(known, key)
		}

		_, err := machineconfig.ParseMeta(known)
		problems = append(problems, p.problems(name, err))
	}

	return errors.Join(problems...)
}
