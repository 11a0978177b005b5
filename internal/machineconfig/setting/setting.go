// Package setting has the settings that a cluster, a pool of machines and a machine may each have, such as labels.
//
// Each is one file: its type, where it is in a configuration, how it is read back from there, and what it may be. Up to
// contract v1.13 most are fields of the main document, from contract v1.14 of separate documents. The attributes
// are rows of the table in internal/provider/settings, which is the only other place that knows a setting. Pure.
package setting

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Setting is one setting. There is one of each, made by define.
type Setting struct {
	// Name is that of the attribute.
	Name string
	// ControlPlanes is set where workers have no place for it.
	ControlPlanes bool
	// Metal is set where it has no effect in a container.
	Metal bool
	// New makes a pointer to an empty value.
	New func() any

	put     func(c *Config, value any)
	read    func(c Config) any // nil for none
	check   func(value any, found *problems, t Target)
	levels  levels[any]
	isEmpty func(value any) bool
}

// definition defines a setting of type T.
type definition[T any] struct {
	name                 string
	controlPlanes, metal bool
	// put writes the value, which check has passed, into a generated configuration.
	put func(c *Config, value T)
	// read is the reverse of put: what Talos, and the generator of the library, say by themselves is left out.
	read func(c Config) T
	// check reports errors in a value.
	check func(value T, found *problems, t Target)
	// empty reports whether a value has no effect.
	empty  func(value T) bool
	levels levels[T]
}

func define[T any](d definition[T]) *Setting {
	of := func(value any) T {
		typed, ok := value.(T)
		if !ok {
			panic(fmt.Sprintf("setting %s: a value of type %T", d.name, value))
		}

		return typed
	}

	return &Setting{
		Name: d.name, ControlPlanes: d.controlPlanes, Metal: d.metal,
		New:     func() any { return new(T) },
		put:     func(c *Config, value any) { d.put(c, of(value)) },
		read:    func(c Config) any { return d.read(c) },
		check:   func(value any, found *problems, t Target) { d.check(of(value), found, t) },
		isEmpty: func(value any) bool { return d.empty(of(value)) },
		levels:  erased[T]{of: of, levels: d.levels},
	}
}

// Values are the settings of one level: of a cluster, a pool or a machine. The type of a value is that of its setting.
type Values map[*Setting]any

// Set adds a value, unless it says nothing.
func (v *Values) Set(s *Setting, value any) {
	if s.isEmpty(value) {
		return
	}

	if *v == nil {
		*v = Values{}
	}

	(*v)[s] = value
}

// MarshalJSON encodes the values by the names of their settings.
func (v Values) MarshalJSON() ([]byte, error) {
	named := make(map[string]any, len(v))
	for s, value := range v {
		named[s.Name] = value
	}

	return json.Marshal(named)
}

// OfControlPlanes are the values of settings that workers have no place for.
func (v Values) OfControlPlanes() Values {
	var rest Values

	for s, value := range v {
		if s.ControlPlanes {
			rest.Set(s, value)
		}
	}

	return rest
}

// WithoutKeys are the values without entries of maps by their keys.
func (v Values) WithoutKeys(key func(string) bool) Values {
	var rest Values

	for s, value := range v {
		if entries, ok := value.(map[string]string); ok {
			kept := maps.Clone(entries)
			maps.DeleteFunc(kept, func(name, _ string) bool { return key(name) })

			value = kept
		}

		rest.Set(s, value)
	}

	return rest
}

// Keys are those of the value of a setting that is a map.
func (v Values) Keys(s *Setting) []string {
	entries, _ := v[s].(map[string]string)

	return slices.Collect(maps.Keys(entries))
}

// sorted are the settings that have values, by their names.
func (v Values) sorted() []*Setting {
	return slices.SortedFunc(maps.Keys(v), func(a, b *Setting) int { return strings.Compare(a.Name, b.Name) })
}

// Config is a configuration that settings are put into, or read from.
type Config struct {
	Main *v1alpha1.Config
	// Documents are all of them, the main one included.
	Documents []config.Document
	Contract  *coreconfig.VersionContract
	// Link is the one that has the address of the machine; empty while that is not known.
	Link string
}

func (c Config) controlPlane() bool { return c.Main.Machine().Type().IsControlPlane() }

// Put writes settings that Check has passed into a generated configuration: into the documents that it has, or as
// further ones.
func (v Values) Put(c *Config) {
	for _, s := range v.sorted() {
		if !s.ControlPlanes || c.controlPlane() {
			s.put(c, v[s])
		}
	}
}

// Read is the reverse of Put: it reads settings at the places where Put writes them with the contract of the
// configuration. It skips what a setting cannot express.
func Read(c Config, settings []*Setting) Values {
	var v Values

	for _, s := range settings {
		if !s.ControlPlanes || c.controlPlane() {
			v.Set(s, s.read(c))
		}
	}

	return v
}

// add adds entries to a map that a configuration has, and entries are those of one.
func (c Config) add(f places.Fact, entries map[string]string) {
	at := places.Make[map[string]string](c.Documents, f)
	*at = with(*at, entries)
}

func (c Config) entries(f places.Fact) map[string]string {
	return *places.Value[map[string]string](c.Documents, f)
}

// addArguments adds arguments of a component to those that a configuration has.
func (c Config) addArguments(f places.Fact, texts map[string]string) {
	at := places.Make[meta.Args](c.Documents, f)
	if *at == nil {
		*at = meta.Args{}
	}

	for name, text := range texts {
		(*at)[name] = meta.NewArgValue(text, nil)
	}
}

// with is a map with the entries of another one.
func with(base, more map[string]string) map[string]string {
	all := make(map[string]string, len(base)+len(more))
	maps.Copy(all, base)
	maps.Copy(all, more)

	return all
}

// beyond is a map without what another one has as well; nil when nothing is left.
func beyond(all, known map[string]string) map[string]string {
	rest := maps.Clone(all)
	maps.DeleteFunc(rest, func(key, value string) bool {
		same, is := known[key]

		return is && same == value
	})

	if len(rest) == 0 {
		return nil
	}

	return rest
}
