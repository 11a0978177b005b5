package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// Difference is a field of an object that differs from its wanted value.
type Difference struct {
	// Keys lead to the field; one in brackets is an element of a list, by its name. Path is the same for people.
	Keys []string
	Path string
	// Found and Wanted are JSON, empty for a missing value.
	Found, Wanted string
}

// String returns a text such as `spec.schedule is "0 4 * * *" instead of "0 3 * * *"`. What is long is left
// out.
func (d Difference) String() string {
	switch {
	case d.Found == "":
		return d.Path + " is missing"
	case d.Wanted == "":
		return d.Path + " was added"
	case len(d.Found)+len(d.Wanted) > longestDifference:
		return d.Path + " changed"
	default:
		return fmt.Sprintf("%s is %s instead of %s", d.Path, d.Found, d.Wanted)
	}
}

// PathOf keys is such as spec.schedule, or env[BUCKET].value below lists of named things.
func PathOf(keys []string) string {
	var path strings.Builder

	for i, key := range keys {
		if i > 0 && !strings.HasPrefix(key, "[") {
			path.WriteByte('.')
		}

		path.WriteString(key)
	}

	return path.String()
}

// longestDifference is how much of a difference a person reads.
const longestDifference = 160

// bookkeeping are the fields that the API server manages itself, and that may change with every request.
var bookkeeping = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}

// Differences compares an object to what it should be, field by field, in the order of their paths. What
// the API server keeps about it and its status are left out, and so is the difference of null and nothing.
func Differences(found, wanted map[string]any) []Difference {
	return differ(nil, nil, plainObject(found), plainObject(wanted))
}

// plainObject is an object without the fields that cannot be wanted.
func plainObject(object map[string]any) map[string]any {
	plain := maps.Clone(object)
	delete(plain, "status")

	if metadata, ok := plain["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range bookkeeping {
			delete(metadata, field)
		}

		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, appsv1.DeprecatedTemplateGeneration)
			metadata["annotations"] = annotations
		}

		plain["metadata"] = metadata
	}

	return plain
}

func differ(found []Difference, keys []string, live, wanted any) []Difference {
	if reflect.DeepEqual(live, wanted) {
		return found
	}

	lives, isMap := live.(map[string]any)
	wants, areMaps := wanted.(map[string]any)

	if !isMap || !areMaps {
		lives, isMap = byName(live)
		wants, areMaps = byName(wanted)
	}

	if !isMap || !areMaps {
		return append(found, Difference{Keys: slices.Clone(keys), Path: PathOf(keys), Found: compact(live),
			Wanted: compact(wanted)})
	}

	below := slices.Collect(maps.Keys(lives))
	below = append(below, slices.Collect(maps.Keys(wants))...)
	slices.Sort(below)

	for _, key := range slices.Compact(below) {
		found = differ(found, append(keys, key), lives[key], wants[key])
	}

	return found
}

// byName reads a list of things that have names, each its own.
func byName(list any) (map[string]any, bool) {
	elements, ok := list.([]any)
	if !ok {
		return nil, false
	}

	named := map[string]any{}

	for _, element := range elements {
		name := elementName(element)
		if name == "" {
			return nil, false
		}

		named[name] = element
	}

	return named, len(named) == len(elements)
}

// elementName is such as [main], empty for an element without a name.
func elementName(element any) string {
	object, ok := element.(map[string]any)
	if !ok {
		return ""
	}

	name, ok := object["name"].(string)
	if !ok {
		return ""
	}

	return "[" + name + "]"
}

func compact(value any) string {
	if value == nil {
		return ""
	}

	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}

	return string(encoded)
}
