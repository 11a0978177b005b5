package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// What a kept schema offers has to work with later ones of the same major version: configurations that were right are
// right, and state that was written is read. Schemas are compared in the JSON of the CLIs.

// object is an object of JSON.
type object = map[string]any

// breaks lists what of a kept provider schema is not there any more, or not as it was.
func breaks(kept, now object) []string {
	var c comparison

	c.schema("provider", inner(kept, "provider"), inner(now, "provider"))

	for kind, label := range map[string]string{
		"resource_schemas": "resource", "data_source_schemas": "data", "ephemeral_resource_schemas": "ephemeral",
		"list_resource_schemas": "list", "action_schemas": "action",
	} {
		c.each(label, inner(kept, kind), inner(now, kind), c.schema)
	}

	c.each("function", inner(kept, "functions"), inner(now, "functions"), c.function)
	c.each("identity", inner(kept, "resource_identity_schemas"), inner(now, "resource_identity_schemas"), c.identity)
	slices.Sort(c.found)

	return c.found
}

// comparison collects what breaks.
type comparison struct{ found []string }

func (c *comparison) say(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// each compares what both have, and names what is gone.
func (c *comparison) each(label string, kept, now object, compare func(at string, kept, now object)) {
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		at := label + " " + name

		if _, there := now[name]; !there {
			c.say("%s is gone", at)

			continue
		}

		compare(at, inner(kept, name), inner(now, name))
	}
}

func (c *comparison) schema(at string, kept, now object) {
	if number(now, "version") < number(kept, "version") {
		c.say("%s has an earlier schema version", at)
	}

	c.attributes(at, inner(inner(kept, "block"), "attributes"), inner(inner(now, "block"), "attributes"))
}

func (c *comparison) attributes(at string, kept, now object) {
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if _, there := now[name]; !there {
			c.say("%s.%s is gone", at, name)

			continue
		}

		c.attribute(at+"."+name, inner(kept, name), inner(now, name))
	}

	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, there := kept[name]; !there && truth(inner(now, name), "required") {
			c.say("%s.%s is new and required", at, name)
		}
	}
}

func (c *comparison) attribute(at string, kept, now object) {
	given := func(a object) bool { return truth(a, "required") || truth(a, "optional") }

	switch {
	case given(kept) && !given(now):
		c.say("%s cannot be given any more", at)
	case !truth(kept, "required") && truth(now, "required"):
		c.say("%s is required", at)
	}

	if truth(kept, "computed") && !truth(now, "computed") {
		c.say("%s is computed no more", at)
	}

	for _, name := range []string{"sensitive", "write_only"} {
		if !truth(kept, name) && truth(now, name) {
			c.say("%s is %s", at, name)
		}
	}

	was, is := inner(kept, "nested_type"), inner(now, "nested_type")
	if !reflect.DeepEqual(kept["type"], now["type"]) || was["nesting_mode"] != is["nesting_mode"] {
		c.say("%s has another type", at)

		return
	}

	c.attributes(at, inner(was, "attributes"), inner(is, "attributes"))
}

func (c *comparison) function(at string, kept, now object) {
	was, is := list(kept, "parameters"), list(now, "parameters")
	if len(was) != len(is) || !reflect.DeepEqual(kept["return_type"], now["return_type"]) ||
		!reflect.DeepEqual(typeOf(kept["variadic_parameter"]), typeOf(now["variadic_parameter"])) {
		c.say("%s has other parameters, or another result", at)

		return
	}

	for i := range was {
		if !reflect.DeepEqual(typeOf(was[i]), typeOf(is[i])) {
			c.say("%s takes another type as parameter %d", at, i+1)
		}
	}
}

func (c *comparison) identity(at string, kept, now object) {
	was, is := inner(kept, "attributes"), inner(now, "attributes")

	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch {
		case is[name] == nil:
			c.say("%s.%s is gone", at, name)
		case !reflect.DeepEqual(typeOf(was[name]), typeOf(is[name])):
			c.say("%s.%s has another type", at, name)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(is)) {
		if truth(inner(is, name), "required_for_import") && !truth(inner(was, name), "required_for_import") {
			c.say("%s.%s is required for imports", at, name)
		}
	}
}

// typeOf is the type of a parameter, or of an attribute of an identity.
func typeOf(v any) any {
	one, _ := v.(object)

	return []any{one["type"], one["is_nullable"]}
}

func inner(o object, name string) object {
	one, _ := o[name].(object)

	return one
}

func list(o object, name string) []any {
	all, _ := o[name].([]any)

	return all
}

func truth(o object, name string) bool {
	v, _ := o[name].(bool)

	return v
}

func number(o object, name string) float64 {
	v, _ := o[name].(float64)

	return v
}
