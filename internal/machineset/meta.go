package machineset

import (
	"errors"
	"maps"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/metavalues"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Meta is the wanted META values, by the keys that the user wrote.
type Meta struct {
	Values map[string]string
	// Sealed are the keys with unknown values.
	Sealed []string
	// Provided are values of other keys in the provider configuration, which no state has.
	Provided map[string]string
}

// Keyed is the values by Talos key; nil when none are wanted. It skips invalid keys: checkMeta refuses them where a
// user can correct them.
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

// drift is the keys for which META differs from the provider configuration. State has the other values themselves, so
// a plan shows how they differ.
func (m Meta) drift(held map[uint8]string) record.Drift {
	keys := metakey.Missing(Meta{Provided: m.Provided}.Keyed(), held)
	if len(keys) == 0 {
		return nil
	}

	return record.Drift{{Kind: record.MetaDiffers, Keys: keys}}
}

// CheckProvidedMeta checks the META values in the provider configuration.
func (p Set) CheckProvidedMeta() error {
	var problems []error

	for _, name := range p.Names() {
		meta := p.Machines[name].Meta
		problems = append(problems, p.problems(name, metavalues.CheckProvided(meta.Provided, meta.Values)))
	}

	return errors.Join(problems...)
}

// checkMeta checks the wanted META values, as far as they are known.
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
