package release

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// mistyped is an error that names the first field of objects whose value does not have the type that Kubernetes
// expects. The server decodes with the same types and the same decoder. But its own error does not say where, or
// quotes the whole object (apimachinery 0.36, serializer/json, Decode; apiserver/pkg/endpoints/handlers/patch.go).
// Of custom kinds, only the common fields are known.
func mistyped(objects []diff.Object) error {
	for _, o := range objects {
		decode := decoderOf(o)

		err := decode(o.Content)
		if err == nil {
			continue
		}

		found := finder{decode: decode, text: err.Error()}

		return fmt.Errorf("%w: %s: %s", ErrType, o, described(found.in(o.Content), err))
	}

	return nil
}

// decoderOf decodes objects as the server does.
func decoderOf(o diff.Object) func(map[string]any) error {
	serializer := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		kubejson.SerializerOptions{})
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	known := scheme.Scheme.Recognizes(kind)

	return func(content map[string]any) error {
		encoded, err := json.Marshal(content)
		if err != nil {
			return err
		}

		var into runtime.Object
		if !known {
			into = &metav1.PartialObjectMetadata{}
		}

		_, _, err = serializer.Decode(encoded, &kind, into)

		return err
	}
}

// described is the problem of a field.
func described(path string, err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(path+": ", ": ") + err.Error()
	}

	path = cmp.Or(path, wrong.Field)

	return fmt.Sprintf("%s has type %s, but Kubernetes expects %s", path, typeFound(wrong.Value),
		typeWanted(wrong.Type))
}

// typeFound is the YAML name of a type. The decoder reports which number it is when it does not fit.
func typeFound(value string) string {
	switch value {
	case "bool":
		return "boolean"
	case "object":
		return "mapping"
	case "array":
		return "list"
	default:
		return value
	}
}

func typeWanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	default:
		return "a value of type " + t.String()
	}
}

// finder looks for the field that an error is about: the innermost one without which there is another error, or none.
type finder struct {
	decode func(map[string]any) error
	text   string
}

// in is the path of the field in the object, empty when it is not found.
func (f finder) in(object map[string]any) string {
	return f.below(object, func(value any) map[string]any {
		whole, _ := value.(map[string]any)

		return whole
	}, "")
}

// below looks in a value; whole is the object with another value in its place.
func (f finder) below(value any, whole func(any) map[string]any, path string) string {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			rest := maps.Clone(value)
			delete(rest, key)

			if f.differs(whole(rest)) {
				return f.below(value[key], func(inner any) map[string]any {
					other := maps.Clone(value)
					other[key] = inner

					return whole(other)
				}, strings.TrimPrefix(path+"."+key, "."))
			}
		}
	case []any:
		for i, element := range value {
			if f.differs(whole(slices.Concat(value[:i], value[i+1:]))) {
				return f.below(element, func(inner any) map[string]any {
					other := slices.Clone(value)
					other[i] = inner

					return whole(other)
				}, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}

	return path
}

func (f finder) differs(object map[string]any) bool {
	err := f.decode(object)

	return err == nil || err.Error() != f.text
}
