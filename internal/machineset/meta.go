package machineset

import (
	"errors"
	"maps"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/metavalues"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Meta is what is wanted of META, by the keys as the user wrote them.
type Meta struct {
	Values map[string]string
	// Sealed are the keys whose values are not known yet.
	Sealed []string
	// Provided are values of the provider's configuration, of other keys, which no state has.
	Provided map[string]string
}

// Keyed is the values by the keys of Talos; nil when none are wanted. Names of no key
// are left out: checkMeta refuses them where a user can still correct them.
func (m Meta) Keyed() map[uint8]string {
	var keyed map[uint8]string

	for _, values := range []map[string]string{m.Values, m.Provided} {
		for name, value := range values {
			key, ok := metavalues.Key(name)
			if !ok {
				continue
			}

			if keyed == nil {
				keyed = map[uint8]string{}
			}

			keyed[key] = value
		}
	}

	return keyed
}

// drift is in which keys META does not hold what the provider's configuration has. Of the others state has the values
// themselves, so that a plan shows how they differ.
func (m Meta) drift(held map[uint8]string) record.Drift {
	keys := metakey.Missing(Meta{Provided: m.Provided}.Keyed(), held)
	if len(keys) == 0 {
		return nil
	}

	return record.Drift{{Kind: record.MetaDiffers, Keys: keys}}
}

// CheckProvidedMeta reports what is wrong with the values for META in the provider's configuration.
func (p Set) CheckProvidedMeta() error {
	var problems []error

	for _, name := range p.Names() {
		meta := p.Machines[name].Meta
		problems = append(problems, p.problems(name, metavalues.CheckProvided(meta.Provided, meta.Values)))
	}

	return errors.Join(problems...)
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

		_, err := metavalues.Parse(known)
		problems = append(problems, p.problems(name, err))
	}

	return errors.Join(problems...)
}
