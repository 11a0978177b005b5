package direct

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// sides are the values at one place of a configuration, a state and a plan. One that is not there is the zero value.
type sides struct {
	config, state, plan tftypes.Value

	// at is the place, in a walk with paths.
	at path.Path
}

// walk changes the plan of the attributes of an object. change returns the value of one, and whether it is another one.
// An attribute changes before those in it do.
type walk struct {
	attributes attributes
	change     func(a *attribute, s sides) (tftypes.Value, bool)
	// paths is true when change needs the place of a value.
	paths bool
}

// object is the plan of an object, and whether it changed.
func (w walk) object(s sides) (tftypes.Value, bool) {
	var changed map[string]tftypes.Value

	planned := named(s.plan)
	if planned == nil {
		return s.plan, false
	}

	config, state := named(s.config), named(s.state)

	for name, a := range w.attributes {
		part := sides{config: config[name], state: state[name], plan: planned[name]}
		if w.paths {
			part.at = s.at.AtName(name)
		}

		value, other := w.attribute(a, part)
		if !other {
			continue
		}

		if changed == nil {
			changed = maps.Clone(planned)
		}

		changed[name] = value
	}

	if changed == nil {
		return s.plan, false
	}

	return tftypes.NewValue(s.plan.Type(), changed), true
}

// attribute is the plan of an attribute, and whether it changed.
func (w walk) attribute(a *attribute, s sides) (tftypes.Value, bool) {
	value, changed := w.change(a, s)
	s.plan = value

	if len(a.within) == 0 || value.IsNull() || !value.IsKnown() {
		return value, changed
	}

	w.attributes = a.within

	var inner bool

	switch value.Type().(type) {
	case tftypes.Map:
		value, inner = w.elements(s)
	case tftypes.List:
		value, inner = w.list(s)
	default:
		value, inner = w.object(s)
	}

	return value, changed || inner
}

// elements is the plan of a map of objects, and whether it changed.
func (w walk) elements(s sides) (tftypes.Value, bool) {
	var changed map[string]tftypes.Value

	planned, config, state := named(s.plan), named(s.config), named(s.state)

	for key, element := range planned {
		part := sides{config: config[key], state: state[key], plan: element}
		if w.paths {
			part.at = s.at.AtMapKey(key)
		}

		value, other := w.object(part)
		if !other {
			continue
		}

		if changed == nil {
			changed = maps.Clone(planned)
		}

		changed[key] = value
	}

	if changed == nil {
		return s.plan, false
	}

	return tftypes.NewValue(s.plan.Type(), changed), true
}

// list is the plan of a list of objects, and whether it changed.
func (w walk) list(s sides) (tftypes.Value, bool) {
	planned := slices.Clone(listed(s.plan))
	config, state := listed(s.config), listed(s.state)
	changed := false

	for i, element := range planned {
		part := sides{plan: element}
		if w.paths {
			part.at = s.at.AtListIndex(i)
		}

		if i < len(config) {
			part.config = config[i]
		}

		if i < len(state) {
			part.state = state[i]
		}

		value, other := w.object(part)
		planned[i], changed = value, changed || other
	}

	if !changed {
		return s.plan, false
	}

	return tftypes.NewValue(s.plan.Type(), planned), true
}
