package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// fields are those of an object that talosop sets, as JSON has them.
type fields map[string]any

// fieldsOf returns the set fields of a typed object. It drops zero values of the type, because an apply would take
// them for set.
func fieldsOf(k *Kind, o any) (fields, error) {
	encoded, err := json.Marshal(o)
	if err != nil {
		return nil, wait.Permanent(fmt.Errorf("encode %s: %w", k.name, err))
	}

	var f fields
	if err := json.Unmarshal(encoded, &f); err != nil {
		return nil, wait.Permanent(fmt.Errorf("decode %s: %w", k.name, err))
	}

	delete(f, "status")
	f["apiVersion"], f["kind"] = k.APIVersion, k.name

	return set(f), nil
}

// set is an object without nulls and empty resources (corev1.Container has them always).
func set(f map[string]any) map[string]any {
	for key, value := range f {
		switch value := value.(type) {
		case nil:
			delete(f, key)
		case map[string]any:
			if set(value); key == "resources" && len(value) == 0 {
				delete(f, key)
			}
		case []any:
			for _, element := range value {
				if element, ok := element.(map[string]any); ok {
					set(element)
				}
			}
		}
	}

	return f
}

// ownedFields returns the fields that talosop set and no other client changed since, with the object's name.
func ownedFields(k *Kind, live Object) (fields, error) {
	owned, err := k.owned(live)
	if err != nil {
		return nil, wait.Permanent(fmt.Errorf("read the field managers of %s: %w", k.Of(live), err))
	}

	return fieldsOf(k, owned)
}

// liveFields are all of an object.
func liveFields(k *Kind, live Object) (fields, error) { return fieldsOf(k, live) }

func (f fields) name() string {
	name, _ := f.part("metadata")["name"].(string)

	return name
}

// part is a map within, made where it is missing.
func (f fields) part(key string) map[string]any {
	part, ok := f[key].(map[string]any)
	if !ok {
		part = map[string]any{}
		f[key] = part
	}

	return part
}

// with is a copy with other metadata and other fields of the spec; a field that is nil is left out.
func (f fields) with(metadata map[string]any, spec map[string]any) fields {
	changed := maps.Clone(f)
	changed["metadata"] = metadata

	merged := maps.Clone(f.part("spec"))
	maps.Copy(merged, spec)
	maps.DeleteFunc(merged, func(_ string, value any) bool { return value == nil })
	changed["spec"] = merged

	return changed
}

// only is an apply to one object and no other of its name.
func (f fields) only(live Object) fields {
	bound := maps.Clone(f)
	metadata := maps.Clone(f.part("metadata"))
	metadata["uid"] = string(live.GetUID())
	bound["metadata"] = metadata

	return bound
}

func (f fields) equal(g fields) bool { return reflect.DeepEqual(map[string]any(f), map[string]any(g)) }
